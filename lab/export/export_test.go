package export_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/quartet-sched/quartet/lab/export"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(t *testing.T, dir string) *export.Run {
	t.Helper()
	r, err := export.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExports(t *testing.T) {
	r := load(t, "testdata/tiny")
	for name, write := range map[string]func(*bytes.Buffer) error{
		"tiny.csv":         func(b *bytes.Buffer) error { return export.CSV(b, r) },
		"tiny.batsim.json": func(b *bytes.Buffer) error { return export.Batsim(b, r) },
		"tiny.swf":         func(b *bytes.Buffer) error { return export.SWF(b, r) },
		"tiny.perfetto.txt": func(b *bytes.Buffer) error {
			var trace bytes.Buffer
			if err := export.Perfetto(&trace, r); err != nil {
				return err
			}
			for _, e := range parsePerfetto(t, trace.Bytes()) {
				fmt.Fprintln(b, e)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := write(&got); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// parsePerfetto reads a trace by the published descriptors, a line for each packet. Slices must be balanced, in order of time
// on each track, and on tracks that are described; nothing may be left that the descriptors do not know.
func parsePerfetto(t *testing.T, trace []byte) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/perfetto_trace.textproto")
	if err != nil {
		t.Fatal(err)
	}
	var described descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&described, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(file.Messages().ByName("Trace"))
	if err := proto.Unmarshal(trace, m); err != nil {
		t.Fatal(err)
	}
	refuseUnknown(t, m)
	tracks, open, last := map[uint64]string{}, map[uint64]int{}, map[uint64]uint64{}
	packets := field(m, "packet").List()
	for i := range packets.Len() {
		p := packets.Get(i).Message()
		if d := field(p, "track_descriptor").Message(); d.IsValid() {
			id := field(d, "uuid").Uint()
			tracks[id] = fmt.Sprintf("%s%s%s", field(d, "name"), field(field(d, "process").Message(), "process_name"), field(field(d, "thread").Message(), "thread_name"))
			lines = append(lines, fmt.Sprintf("track %d %q of %d, process %d, thread %d", id, tracks[id], field(d, "parent_uuid").Uint(),
				field(field(d, "process").Message(), "pid").Int()+field(field(d, "thread").Message(), "pid").Int(), field(field(d, "thread").Message(), "tid").Int()))
			continue
		}
		e := field(p, "track_event").Message()
		at, track, kind := field(p, "timestamp").Uint(), field(e, "track_uuid").Uint(), field(e, "type").Enum()
		if _, known := tracks[track]; !known {
			t.Errorf("packet %d is on track %d, which was not described", i, track)
		}
		if at < last[track] {
			t.Errorf("packet %d of track %d goes back in time", i, track)
		}
		last[track] = at
		open[track] += map[protoreflect.EnumNumber]int{1: +1, 2: -1}[kind]
		if open[track] < 0 || open[track] > 1 {
			t.Errorf("packet %d: %d slices are open on track %q", i, open[track], tracks[track])
		}
		line := fmt.Sprintf("%d %s %q %s", at, e.Descriptor().Fields().ByName("type").Enum().Values().ByNumber(kind).Name(), tracks[track], field(e, "name"))
		if kind == 4 {
			line += fmt.Sprint(field(e, "double_counter_value").Float())
		}
		for k := range field(e, "debug_annotations").List().Len() {
			a := field(e, "debug_annotations").List().Get(k).Message()
			line += fmt.Sprintf(" %s=%s%d", field(a, "name"), field(a, "string_value"), field(a, "int_value").Int())
		}
		lines = append(lines, line)
	}
	for track, n := range open {
		if n != 0 {
			t.Errorf("%d slices of track %q do not end", n, tracks[track])
		}
	}
	return lines
}

func field(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

func refuseUnknown(t *testing.T, m protoreflect.Message) {
	t.Helper()
	if len(m.GetUnknown()) > 0 {
		t.Errorf("a %s has fields that the published form does not have", m.Descriptor().Name())
	}
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case d.Message() == nil:
		case d.IsList():
			for i := range v.List().Len() {
				refuseUnknown(t, v.List().Get(i).Message())
			}
		default:
			refuseUnknown(t, v.Message())
		}
		return true
	})
}

func TestLoadTellsWhatIsMissing(t *testing.T) {
	tests := map[string]struct{ remove, want string }{
		"no timeline": {"timeline.csv", "timeline.csv: cannot be read: no such file or directory; repeat the run with --set output.write=[jobs,timeline,usage]"},
		"no jobs":     {"jobs.csv", "jobs.csv: cannot be read: no such file or directory; repeat the run with --set output.write=[jobs,timeline,usage]"},
		"no usage":    {"usage.csv", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, tc.remove)); err != nil {
				t.Fatal(err)
			}
			_, err := export.Load(dir)
			want := ""
			if tc.want != "" {
				want = filepath.Join(dir, tc.want)
			}
			if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// Jobs that are on a device at a time have tracks of their own there, as few as will do, and a processor is a device whatever part of it a job has.
func TestSharedDevicesAreDrawn(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"timeline.csv": "job,start_s,end_s,accelerator,replicas,nodes,seats,batch_per_device,accumulation_steps,end\n" +
			"0,0,30,t4,1,1,n:1,,,finished\n1,10,40,t4,2,1,n:3,,,finished\n2,20,50,t4,1,1,n:1,,,finished\n3,30,60,t4,1,1,n:1,,,finished\n",
		"nodes.csv": "node,accelerator,devices,start_s,end_s,health\nn,t4,2,0,60,ready\nm,t4,1,0,60,ready\n",
		"jobs.csv": "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome,share_milli,shared_s\n" +
			"0,a,,0,0,30,30,0,1,0,3,completed,100,20\n1,b,,0,10,40,40,10,2,0,6,completed,100,30\n2,c,,0,20,50,50,20,1,0,15,completed,500,30\n3,d,,0,30,60,60,30,1,0,9,completed,300,20\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := load(t, dir)
	var trace, swf bytes.Buffer
	if err := export.Perfetto(&trace, r); err != nil {
		t.Fatal(err)
	}
	var got []string
	threads := map[string]bool{}
	for _, line := range parsePerfetto(t, trace.Bytes()) {
		if _, thread, is := strings.Cut(line, ", thread "); is {
			if thread != "0" && threads[thread] {
				t.Errorf("two tracks are of thread %s", thread)
			}
			threads[thread] = true
		}
		if strings.Contains(line, `"device `) && strings.Contains(line, "SLICE") {
			got = append(got, line)
		}
	}
	want := []string{
		`0 TYPE_SLICE_BEGIN "device 0" a job=0`, `30000000000 TYPE_SLICE_END "device 0" `, `30000000000 TYPE_SLICE_BEGIN "device 0" d job=3`, `60000000000 TYPE_SLICE_END "device 0" `,
		`10000000000 TYPE_SLICE_BEGIN "device 0, job 2" b`, `40000000000 TYPE_SLICE_END "device 0, job 2" `,
		`20000000000 TYPE_SLICE_BEGIN "device 0, job 3" c`, `50000000000 TYPE_SLICE_END "device 0, job 3" `,
		`10000000000 TYPE_SLICE_BEGIN "device 1" b job=1`, `40000000000 TYPE_SLICE_END "device 1" `,
	}
	for i := range got {
		if i < len(want) && !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("slice %d is %s, want %s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d ends of slices, want %d", len(got), len(want))
	}
	if err := export.SWF(&swf, r); err != nil {
		t.Fatal(err)
	}
	for job, allocated := range map[string]string{"1": "1", "2": "2", "3": "1", "4": "1"} {
		for line := range strings.SplitSeq(swf.String(), "\n") {
			if cells := strings.Fields(line); len(cells) > 5 && cells[0] == job && cells[4] != allocated {
				t.Errorf("%s: job %s has %s processors, want %s", line, job, cells[4], allocated)
			}
		}
	}
}
