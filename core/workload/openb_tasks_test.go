package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

const openbTaskHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"

func TestReadOpenBTasks(t *testing.T) {
	none := math.NaN()
	cases := map[string]struct {
		content string
		want    []OpenBTask
		err     string // a part of it
	}{
		"parts, whole devices and none": {
			content: openbTaskHeader + "b,12000,16384,1,460,V100M16|V100M32|V100M32,LS,Running,5,20,6\na,500,1,8,1000,,BE,Pending,7,9,\nc,500,1,0,0,,,,,,\n",
			want: []OpenBTask{
				{Name: "b", CPUMilli: 12000, MemoryMiB: 16384, Devices: 1, Milli: 460, Types: "V100M16|V100M32|V100M32", Created: 5, Deleted: 20, Scheduled: 6},
				{Name: "a", CPUMilli: 500, MemoryMiB: 1, Devices: 8, Milli: 1000, Created: 7, Deleted: 9, Scheduled: none},
				{Name: "c", CPUMilli: 500, MemoryMiB: 1, Created: none, Deleted: none, Scheduled: none},
			},
		},
		"five columns": {
			content: "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,2,1,10\n",
			want:    []OpenBTask{{Name: "a", CPUMilli: 1, MemoryMiB: 2, Devices: 1, Milli: 10, Created: none, Deleted: none, Scheduled: none}},
		},
		"a missing column":         {content: "name,cpu_milli,memory_mib,num_gpu\na,1,2,1\n", err: `t.csv:1: missing column "gpu_milli"`},
		"parts of several devices": {content: openbTaskHeader + "a,1,1,2,500,,,,,,\n", err: "2:9: gpu_milli is \"500\"; expected 1000, as the task takes 2 devices"},
		"a device without parts":   {content: openbTaskHeader + "a,1,1,1,0,,,,,,\n", err: "2:9: gpu_milli is \"0\"; expected 0 without devices, and more with one"},
		"parts without a device":   {content: openbTaskHeader + "a,1,1,0,5,,,,,,\n", err: "2:9: gpu_milli"},
		"more than a device":       {content: openbTaskHeader + "a,1,1,1,1001,,,,,,\n", err: "2:9: gpu_milli is \"1001\""},
		"a half thousandth":        {content: openbTaskHeader + "a,0.5,1,1,100,,,,,,\n", err: "2:3: cpu_milli"},
		"a type without a name":    {content: openbTaskHeader + "a,1,1,1,100,T4||P100,,,,,\n", err: "2:13: gpu_spec"},
		"deleted before it was":    {content: openbTaskHeader + "a,1,1,1,100,,,,9,8,\n", err: "deletion_time is \"8\"; expected a moment not before the task was created"},
		"a name twice":             {content: openbTaskHeader + "a,1,1,1,100,,,,,,\na,1,1,1,100,,,,,,\n", err: "3:1: name is \"a\"; expected a task of its own; it is on line 2 too"},
		"all problems at once":     {content: openbTaskHeader + "a,x,1,1,100,,,,,,\nb,1,1,y,100,,,,,,\n", err: "3:7: num_gpu is \"y\""},
		"no rows":                  {content: openbTaskHeader, err: "no rows"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, err := newInput("t.csv", []byte(tc.content))
			if err != nil {
				t.Fatal(err)
			}
			got, err := readOpenBTasks(in)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadOpenBNodeList(t *testing.T) {
	const header = "sn,cpu_milli,memory_mib,gpu,model\n"
	cases := map[string]struct {
		rows string
		want []OpenBNode
		err  string
	}{
		"in the order of the list": {
			rows: "b,64000,262144,2,P100\na,96000,1,8,G2\nc,5,6,0,\n",
			want: []OpenBNode{{"b", 64000, 262144, 2, "P100"}, {"a", 96000, 1, 8, "G2"}, {"c", 5, 6, 0, ""}},
		},
		"a type without a name": {rows: "a,1,1,2,\n", err: "2:9: model is \"\""},
		"too many devices":      {rows: "a,1,1,65,T4\n", err: "2:7: gpu is \"65\""},
		"a node twice":          {rows: "a,1,1,1,T4\na,1,1,1,T4\n", err: "3:1: sn is \"a\"; expected a node of its own; it is on line 2 too"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ReadOpenBNodeList(t.Context(), writeFile(t, header+tc.rows, t.TempDir(), "nodes.csv"))
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// Every published list is read, whole or cut down.
func TestReadOpenBTasksOfTheReference(t *testing.T) {
	for list, want := range map[string]struct{ tasks, parts, typed int }{
		"cpu250": {9420, 3078, 0}, "gpushare100": {8152, 7064, 0}, "gpuspec33": {8152, 3078, 2388}, "multigpu50": {9061, 3078, 0},
	} {
		t.Run(list, func(t *testing.T) {
			tasks, err := ReadOpenBTasks(t.Context(), refdata.Path(t, "data", "fgd", "openb_pod_list_"+list+".csv.gz"))
			if err != nil {
				t.Fatal(err)
			}
			parts, typed := 0, 0
			for _, task := range tasks {
				if task.Milli > 0 && task.Milli < 1000 {
					parts++
				}
				if task.Types != "" {
					typed++
				}
			}
			if len(tasks) != want.tasks || parts != want.parts || typed != want.typed {
				t.Errorf("%d tasks, %d with parts of a device, %d with types; want %+v", len(tasks), parts, typed, want)
			}
		})
	}
}

// Any file is read, or refused with positioned problems.
func FuzzOpenBTasks(f *testing.F) {
	f.Add([]byte(openbTaskHeader + "b,12000,16384,1,460,V100M16|V100M32,LS,Running,5,20,6\na,500,1,8,1000,,BE,Pending,7,9,\n"))
	f.Add([]byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,2,1,10\n\"x"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		tasks, err := readOpenBTasks(in)
		if err != nil {
			positioned(t, err)
			return
		}
		for _, task := range tasks {
			if task.Name == "" || task.CPUMilli < 0 || task.MemoryMiB < 0 || task.Devices < 0 || task.Devices > core.MaxDevicesPerNode ||
				(task.Devices == 0) != (task.Milli == 0) || task.Milli < 0 || task.Milli > 1000 || task.Devices > 1 && task.Milli < 1000 {
				t.Errorf("%+v", task)
			}
		}
	})
}
