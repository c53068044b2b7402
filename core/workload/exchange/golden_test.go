package exchange

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/imports")

// optionsOf reads the options of an import, one a line: from FORMAT, map COLUMN=NAME, keep COLUMN=VALUE|VALUE, ahead HOURS of UTC,
// zone NAME.
func optionsOf(t *testing.T, text string) (o Options) {
	t.Helper()
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, value, _ := strings.Cut(rest, "=")
		switch word {
		case "from":
			o.From = rest
		case "map":
			if o.Map == nil {
				o.Map = map[string]string{}
			}
			o.Map[name] = value
		case "keep":
			o.Keep = append(o.Keep, Keep{name, strings.Split(value, "|")})
		case "ahead":
			o.Zone = time.FixedZone("", len(rest)*3600)
		case "zone":
			zone, err := time.LoadLocation(rest)
			if err != nil {
				t.Fatal(err)
			}
			o.Zone = zone
		case "":
		default:
			t.Fatalf("option %q", line)
		}
	}
	return o
}

// imported is what an import makes of a log: the jobs, and what was dropped.
func imported(o Options, log []byte) string {
	trace, counts, err := Import(context.Background(), "log", bytes.NewReader(log), o)
	if err != nil {
		return err.Error() + "\n"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d of %d rows from %v on\n", counts.Kept, counts.Rows, trace.Epoch)
	if err := WriteCSV(&b, trace); err != nil {
		return err.Error() + "\n"
	}
	for _, d := range counts.Dropped {
		fmt.Fprintf(&b, "dropped %d: %s, first in line %d: %q\n", d.Rows, d.Reason, d.Line, d.Example)
	}
	return b.String()
}

// What becomes of each kind of row, and of logs that cannot be read at all.
func TestImports(t *testing.T) {
	paths, err := filepath.Glob("testdata/imports/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil || len(archive.Files) != 2 {
				t.Fatalf("%d files, error %v", len(archive.Files), err)
			}
			got := imported(optionsOf(t, string(archive.Comment)), archive.Files[0].Data)
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A log that cannot be read on is no log, wherever it breaks; one that is interrupted blames nobody.
func TestImportOfABrokenLog(t *testing.T) {
	broken := errors.New("broken")
	logs := map[string]string{
		CSV: "name,submit_s,duration_s,replicas\na,0,1,1\n", Sacct: messy, SWF: "1 0 10 100 4 -1 -1 4 200 -1 1 3 1 7 1 1 -1 -1\n",
		Batsim: `{"jobs":[{"id":"a","subtime":1,"res":1,"profile":"p"}],`, Philly: `[{"jobid":"a"},`, Kubectl: `{"items":[{"kind":"Job"}],`,
	}
	for format, log := range logs {
		for _, failure := range []error{broken, context.Canceled, context.DeadlineExceeded} {
			for _, before := range []string{"", log} {
				r := &failing{text: strings.NewReader(before), err: failure}
				_, _, err := Import(context.Background(), "log", r, Options{From: format})
				if err == nil || !strings.Contains(err.Error(), failure.Error()) {
					t.Errorf("%s after %d bytes: error %v, want %v", format, len(before), err, failure)
				}
				if interrupted := !errors.Is(failure, broken) && !strings.HasPrefix(log, "{") && !strings.HasPrefix(log, "["); errors.Is(err, failure) != interrupted {
					t.Errorf("%s after %d bytes: error %#v", format, len(before), err)
				}
			}
		}
		for name, r := range map[string]*failing{
			"a byte order mark of UTF-16":     {text: strings.NewReader("\xff\xfea\x00")},
			"another one":                     {text: strings.NewReader("\xfe\xff\x00a")},
			"gzip without an end":             {text: strings.NewReader("\x1f\x8b\x08")},
			"gzip without an end of its data": {text: strings.NewReader("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x10\x00\xef\xff")},
		} {
			r.err = nil
			_, _, err := Import(context.Background(), "log", r.text, Options{From: format})
			want := "log: is UTF-16 text; save it as UTF-8"
			if strings.HasPrefix(name, "gzip") {
				want = "the file is cut short"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: error %v, want %q", format, name, err, want)
			}
		}
	}
}

// failing reads a text, and then fails.
type failing struct {
	text *strings.Reader
	err  error
}

func (f *failing) Read(b []byte) (int, error) {
	if f.text.Len() > 0 {
		return f.text.Read(b)
	}
	return iotest.ErrReader(f.err).Read(b)
}

// An import of many rows ends when it is interrupted, and not before.
func TestImportIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	job := `{"id":"%d","subtime":1,"res":1,"profile":"p"}`
	for format, rows := range map[string]func(n int) string{
		CSV: func(n int) string {
			var b strings.Builder
			b.WriteString("name,submit_s,duration_s,replicas\n")
			for i := range n {
				fmt.Fprintf(&b, "%d,0,1,1\n", i)
			}
			return b.String()
		},
		SWF: func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "%d 0 10 100 4 -1 -1 4 200 -1 1 3 1 7 1 1 -1 -1\n", i)
			}
			return b.String()
		},
		Batsim: func(n int) string {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf(job, i))
			}
			return `{"jobs":[` + strings.Join(all, ",") + `],"profiles":{"p":{"type":"delay","delay":2}}}`
		},
	} {
		for n, want := range map[int]error{chunk - 1: nil, chunk: context.Canceled} {
			trace, _, err := Import(ctx, "log", strings.NewReader(rows(n)), Options{From: format})
			if !errors.Is(err, want) || want == nil && trace.Len() != n {
				t.Errorf("%s of %d rows: error %v, want %v", format, n, err, want)
			}
			if trace, _, err := Import(t.Context(), "log", strings.NewReader(rows(n)), Options{From: format}); err != nil || trace.Len() != n {
				t.Errorf("%s of %d rows, not interrupted: error %v", format, n, err)
			}
		}
	}
}

// written are records of every kind, for what is written of them.
func written() *Trace {
	t := &Trace{}
	add := func(r Record, more Details) {
		if r.Start == 0 {
			r.Start = nan
		}
		if r.Limit == 0 {
			r.Limit = nan
		}
		if r.Estimate == 0 {
			r.Estimate = nan
		}
		t.Add(r, more)
	}
	add(Record{Name: "late", Submit: 9, Start: 9.5, Duration: 2, Replicas: 8, Outcome: "cancelled", Tenant: "lab", Application: "bert"}, Details{})
	add(Record{Name: "7", Submit: 1, Start: 3, Duration: 0.25, Limit: 60, Replicas: 2, Outcome: "completed", Tenant: "vision lab", Accelerators: "a100|v100"}, Details{})
	add(Record{Name: "007", Submit: 1, Duration: 2, Estimate: 5, Replicas: 2, Outcome: "timeout", Tenant: "lab"}, Details{})
	add(Record{Name: "a, \"b\"", Submit: 1.5, Duration: 3, Replicas: 1}, Details{Weight: 2, CPUs: 3, MemoryGB: 4.5, MinReplicas: 1, MaxReplicas: 4, Pinned: true})
	add(Record{Name: " b", Submit: 0, Duration: 2, Replicas: 3}, Details{Weight: 1, MinReplicas: 2, MaxReplicas: 3})
	return t
}

// numbered are records whose names are numbers.
func numbered() *Trace {
	t := &Trace{}
	for _, name := range []string{"12", "7"} {
		t.Add(Record{Name: name, Submit: 4, Start: 6, Limit: nan, Estimate: nan, Duration: 2, Replicas: 1, Tenant: "3" + name, Application: "1"}, Details{})
	}
	return t
}

func TestWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(*bytes.Buffer) ([]Loss, error)
		want  string
		lost  []Loss
	}{
		"csv": {
			func(b *bytes.Buffer) ([]Loss, error) { return nil, WriteCSV(b, written()) },
			`name,submit_s,duration_s,replicas,tenant,application,weight,min_replicas,max_replicas,accelerators,cpus,memory_gb,pinned,limit_s,estimate_s,observed_start_s,outcome
" b",0,2,3,,,,2,,,,,,,,,
7,1,0.25,2,vision lab,,,,,a100|v100,,,,60,,3,completed
007,1,2,2,lab,,,,,,,,,,5,,timeout
"a, ""b""",1.5,3,1,,,2,,4,,3,4.5,true,,,,
late,9,2,8,lab,bert,,,,,,,,,,9.5,cancelled
`, nil,
		},
		"csv of numbers": {
			func(b *bytes.Buffer) ([]Loss, error) { return nil, WriteCSV(b, numbered()) },
			"name,submit_s,duration_s,replicas,tenant,application,observed_start_s\n12,4,2,1,312,1,6\n7,4,2,1,37,1,6\n", nil,
		},
		"swf": {
			func(b *bytes.Buffer) ([]Loss, error) { return WriteSWF(b, written()) },
			`; Version: 2.2
; MaxJobs: 5
; MaxRecords: 5
; UnixStartTime: 0
; Note: processors are accelerators; the largest job has 8
; Tenant: 1 vision lab
; Tenant: 2 lab
; Application: 1 bert
1 0 -1 2 3 -1 -1 3 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
2 1 2 1 2 -1 -1 2 60 -1 1 1 -1 -1 -1 -1 -1 -1
3 1 -1 2 2 -1 -1 2 -1 -1 0 2 -1 -1 -1 -1 -1 -1
4 2 -1 3 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
5 9 1 2 8 -1 -1 8 -1 -1 5 2 -1 1 -1 -1 -1 -1
`,
			[]Loss{
				{"times rounded to seconds", 3},
				{"names replaced by numbers", 5},
				{"outcomes that are neither completed, failed nor cancelled, written as failed", 1},
				{"accelerator types, estimates, weights, bounds, CPUs, memory, deadlines and tiers left out", 4},
			},
		},
		"swf of numbers": {
			func(b *bytes.Buffer) ([]Loss, error) { return WriteSWF(b, numbered()) },
			`; Version: 2.2
; MaxJobs: 2
; MaxRecords: 2
; UnixStartTime: 0
; Note: processors are accelerators; the largest job has 1
12 4 2 2 1 -1 -1 1 -1 -1 -1 312 -1 1 -1 -1 -1 -1
7 4 2 2 1 -1 -1 1 -1 -1 -1 37 -1 1 -1 -1 -1 -1
`,
			[]Loss{},
		},
		"swf from a day on": {
			func(b *bytes.Buffer) ([]Loss, error) {
				trace := &Trace{Epoch: 1767600000.6}
				trace.Add(Record{Name: "1", Submit: 4, Start: nan, Duration: 2, Limit: nan, Estimate: nan, Replicas: 1}, Details{})
				return WriteSWF(b, trace)
			},
			`; Version: 2.2
; MaxJobs: 1
; MaxRecords: 1
; UnixStartTime: 1767600001
; Note: processors are accelerators; the largest job has 1
1 4 -1 2 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
`,
			[]Loss{},
		},
		"swf of limits and outcomes": {
			func(b *bytes.Buffer) ([]Loss, error) {
				trace := &Trace{}
				for i, limit := range []float64{0.25, 1.5, 60, nan} {
					trace.Add(Record{
						Name: strconv.Itoa(i), Start: nan, Estimate: nan, Limit: limit, Duration: 2, Replicas: 1,
						Outcome: []string{"failed", "timeout", "out_of_memory", "preempted"}[i],
					}, Details{})
				}
				return WriteSWF(b, trace)
			},
			`; Version: 2.2
; MaxJobs: 4
; MaxRecords: 4
; UnixStartTime: 0
; Note: processors are accelerators; the largest job has 1
0 0 -1 2 1 -1 -1 1 1 -1 0 -1 -1 -1 -1 -1 -1 -1
1 0 -1 2 1 -1 -1 1 2 -1 0 -1 -1 -1 -1 -1 -1 -1
2 0 -1 2 1 -1 -1 1 60 -1 0 -1 -1 -1 -1 -1 -1 -1
3 0 -1 2 1 -1 -1 1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1
`,
			[]Loss{{"times rounded to seconds", 2}, {"outcomes that are neither completed, failed nor cancelled, written as failed", 3}},
		},
		"batsim": {
			func(b *bytes.Buffer) ([]Loss, error) { return WriteBatsim(b, written(), 4) },
			`{"nb_res": 8,
"jobs": [
{"id":" b","subtime":0,"res":3,"profile":"delay_2"},
{"id":"7","subtime":1,"res":2,"profile":"delay_0.25","walltime":60,"extra_data":"{\"tenant\":\"vision lab\",\"accelerators\":\"a100|v100\",\"outcome\":\"completed\",\"observed_start\":3}"},
{"id":"007","subtime":1,"res":2,"profile":"delay_2","extra_data":"{\"tenant\":\"lab\",\"outcome\":\"timeout\",\"estimate\":5}"},
{"id":"a, \"b\"","subtime":1.5,"res":1,"profile":"delay_3"},
{"id":"late","subtime":9,"res":8,"profile":"delay_2","extra_data":"{\"tenant\":\"lab\",\"application\":\"bert\",\"outcome\":\"cancelled\",\"observed_start\":9.5}"}
],
"profiles": {
"delay_0.25": {"type": "DelayProfile", "delay": 0.25},
"delay_2": {"type": "DelayProfile", "delay": 2},
"delay_3": {"type": "DelayProfile", "delay": 3}
}}
`,
			[]Loss{{"weights, bounds, CPUs, memory, deadlines and tiers left out", 2}},
		},
		"batsim for a large machine": {
			func(b *bytes.Buffer) ([]Loss, error) { return WriteBatsim(b, &Trace{}, 16) },
			"{\"nb_res\": 16,\n\"jobs\": [\n],\n\"profiles\": {\n}}\n",
			[]Loss{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			lost, err := tc.write(&b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.lost, lost); diff != "" {
				t.Errorf("lost -want +got:\n%s", diff)
			}
		})
	}
}

// Records come in order of submission, then of their lines, then of their places; what they tell besides is theirs.
func TestOrderOfRecords(t *testing.T) {
	trace := &Trace{}
	for i, submit := range []float64{5, 3, 5, 3, 4} {
		trace.add(&Record{Submit: submit, line: int32([]int{9, 8, 7, 8, 1}[i])})
	}
	if diff := cmp.Diff([]int32{1, 3, 4, 2, 0}, trace.order()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	more := Details{Weight: 2, Pinned: true}
	trace.Add(Record{}, more)
	if trace.At(5).Details() != more || trace.At(4).Details() != (Details{}) {
		t.Errorf("details %+v and %+v", trace.At(5).Details(), trace.At(4).Details())
	}
	for i := range 2 * chunk {
		trace.add(&Record{Replicas: int32(i)})
	}
	if n := trace.Len(); n != 2*chunk+6 || trace.At(n-1).Replicas != 2*chunk-1 || len(trace.chunks) != 3 {
		t.Errorf("%d records in %d pieces, the last with %d replicas", n, len(trace.chunks), trace.At(n-1).Replicas)
	}
}

// A line that is too long is counted, wherever it stands.
func TestLongLinesAreCounted(t *testing.T) {
	long := strings.Repeat("1 ", maxLine)
	row := "1 0 0 100 4 -1 -1 9 0 -1 1 1 1 0 1 1 -1 -1\n"
	want := "1 of 2 rows from 0 on\nname,submit_s,duration_s,replicas,tenant,application,observed_start_s,outcome\n1,0,100,4,1,0,0,completed\n" +
		"dropped 1: line is longer than 1 MiB, first in line 1: \"\"\n"
	if diff := cmp.Diff(want, imported(Options{From: SWF}, []byte(long+"\n"+row))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
