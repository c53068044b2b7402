package exchange

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// messy is what sacct -P writes of a lively week.
const messy = `JobID|JobName|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES|ReqTRES|NNodes
101|train|ann|vision|gpu|2026-01-05T08:00:00|2026-01-05T08:00:10|2026-01-05T09:00:10|01:00:00|1-00:00:00|COMPLETED|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1|gres/gpu=4|1
101.batch|batch|||gpu|2026-01-05T08:00:10|2026-01-05T08:00:10|2026-01-05T09:00:10|01:00:00||COMPLETED|cpu=8||1
101.0|python|||gpu|2026-01-05T08:00:10|2026-01-05T08:00:10|2026-01-05T09:00:10|01:00:00||COMPLETED|cpu=8||1
102|a|b|c|ann|vision|gpu|2026-01-05T07:59:00|2026-01-05T08:00:10|2026-01-05T08:30:10|30:00|UNLIMITED|CANCELLED by 1000|billing=8,gres/gpu:a100=4,gres/gpu:v100=2,node=2|gres/gpu=6|2
103_4|arr|bob|speech|gpu|1767600000|1767600005|1767600065|00:01:00|Partition_Limit|TIMEOUT|gres/gpu=1|gres/gpu=1|1
103_[5-9%2]|arr|bob|speech|gpu|2026-01-05T08:00:00|Unknown|Unknown|00:00:00|10:00|PENDING||gres/gpu=1|1
104|cpu|bob|speech|cpu|2026-01-05T08:00:00|2026-01-05T08:00:10|2026-01-05T08:10:10|00:10:00|10:00|COMPLETED|cpu=8,mem=2G|cpu=8|1
105|run|bob|speech|gpu|2026-01-05T08:00:00|2026-01-05T08:00:10|Unknown|2-03:00:00|10:00|RUNNING|gres/gpu=1|gres/gpu=1|1
106|odd|bob|speech|gpu|2026-01-05T08:00:00|2026-01-05T08:00:10|2026-01-05T07:00:10|00:00:00|10:00|FAILED|gres/gpu=1|gres/gpu=1|1
107|rq|bob|speech|gpu|2026-01-05T08:00:00|2026-01-05T08:00:10|2026-01-05T08:00:20|00:00:10|10:00|NODE_FAIL|gres/gpu=1|gres/gpu=1|1
107|rq|bob|speech|gpu|2026-01-05T08:01:00|2026-01-05T08:02:10|2026-01-05T08:04:20|00:02:10|10:00|COMPLETED|gres/gpu=1|gres/gpu=1|1
108|short
109|gone|bob|speech|gpu|2026-01-05T08:00:00|None|2026-01-05T08:04:20|00:00:00|10:00|CANCELLED by 0||gres/gpu=1|1
110|lost|bob|speech|gpu|2026-01-05T08:00:00|2026-01-05T08:02:10|Unknown|00:02:10|10:00|COMPLETED|gres/gpu=1|gres/gpu=1|1
`

func TestImport(t *testing.T) {
	cases := map[string]struct {
		from, log string
		options   Options
		want      string // as CSV
		dropped   map[string]int
	}{
		"sacct": {
			from: Sacct, log: messy,
			want: `name,submit_s,duration_s,replicas,tenant,accelerators,limit_s,observed_start_s,outcome
102,0,1800,6,vision,a100|v100,,70,cancelled
101,60,3600,4,vision,a100,86400,70,completed
103_4,60,60,1,speech,,,65,timeout
107,120,130,1,speech,,600,190,completed
`,
			dropped: map[string]int{
				"step of a job": 2, reasonAgain: 1, reasonBackwards: 1, reasonNotEnded: 1, reasonNoGPU: 1, reasonNeverRan: 1, "end is not known": 1,
				"row has not the 14 columns of the header": 1, "tasks of an array that never started": 1,
			},
		},
		"sacct with a divider at the end, devices on each node and Windows line ends": {
			from:    Sacct,
			log:     "\ufeffJobIDRaw|Submit|Start|End|TimelimitRaw|NNodes|AllocGRES|State|\r\n7|100|110|120|5|2|gpu:a100:4(IDX:0-3),lic:1|COMPLETED|\r\n8|100|110|120|5|2|gpu:2|OUT_OF_MEMORY|\r\n",
			want:    "name,submit_s,duration_s,replicas,accelerators,limit_s,observed_start_s,outcome\n7,100,10,8,a100,300,110,completed\n8,100,10,4,,300,110,out_of_memory\n",
			dropped: map[string]int{},
		},
		"kueue": {
			from: Kueue,
			log: "namespace,name,local_queue,creation_timestamp,admitted_at,finished_at,nvidia.com/gpu,flavor,reason,priority\n" +
				"ml,job-a,team-a,2026-01-05T08:00:00Z,2026-01-05T08:01:00Z,2026-01-05T09:01:00Z,8,a100,Succeeded,100\n" +
				"web,job-a,team-b,2026-01-05T08:00:00.5Z,2026-01-05T08:01:00Z,2026-01-05T08:11:00Z,1,,Failed,0\n" +
				"web,job-b,team-b,2026-01-05T08:00:00Z,,,1,,,0\n",
			want:    "name,submit_s,duration_s,replicas,tenant,accelerators,observed_start_s,outcome\nml/job-a,0,3600,8,team-a,a100,60,completed\nweb/job-a,0.5,600,1,team-b,,60,failed\n",
			dropped: map[string]int{reasonNeverRan: 1},
		},
		"swf": {
			from: SWF,
			log: "; Version: 2.2\n; Tenant: 3 vision lab\n1 0 10 100 4 -1 -1 4 200 -1 1 3 1 7 1 1 -1 -1\n2 5 -1 50 -1 -1 -1 2 -1 -1 0 4 1 -1 1 1 -1 -1\n" +
				"3 6 0 5 0 -1 -1 0 -1 -1 1 4 1 -1 1 1 -1 -1\n4 6 0 5 1 -1 -1 1 -1 -1 2 4 1 -1 1 1 -1 -1\n5 6 0 -1 1 -1 -1 1 -1 -1 5 4 1 -1 1 1 -1 -1\n6 7\n1 9 0 1 1 -1 -1 1 1 1 1 1 1 1 1 1 1 1\n",
			want: "name,submit_s,duration_s,replicas,tenant,application,limit_s,observed_start_s,outcome\n1,0,100,4,vision lab,7,200,10,completed\n2,5,50,2,4,,,,failed\n",
			dropped: map[string]int{
				reasonNoGPU: 1, reasonParts: 1, reasonNeverRan: 1, "line has not 18 fields": 1, reasonAgain: 1,
			},
		},
		"batsim": {
			from: Batsim,
			log: `{"profiles": {"1": {"type": "delay", "delay": 20.5}, "p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}, "nb_res": 4, "jobs": [
				{"id": "w0!1", "subtime": 1.5, "walltime": 100, "res": 4, "profile": "1"}, {"id": 2, "subtime": 0, "walltime": -1, "res": 1, "profile": 1, "color": "red"},
				{"id": 3, "subtime": 0, "res": 1, "profile": "p"}, {"id": 4, "subtime": 0, "res": 1, "profile": "none"}, {"id": [], "res": 1}, {"id": 2, "subtime": 3, "res": 1, "profile": "1"}, {"id": 5, "subtime": 3, "res": 0, "profile": "1"}]}`,
			want: "name,submit_s,duration_s,replicas,limit_s\n2,0,20.5,1,\nw0!1,1.5,20.5,4,100\n",
			dropped: map[string]int{
				`profile of type "parallel_homogeneous" has no duration`: 1, "profile does not exist": 1, "job is not of the form of Batsim": 1, reasonAgain: 1, reasonNoGPU: 1,
			},
		},
		"a table with other names, semicolons and quotes": {
			from:    CSV,
			options: Options{Map: map[string]string{"submit_s": "queued", "duration_s": "runtime", "replicas": "GPUs", "tenant": "who"}, Keep: []Keep{{"who", []string{"a;b", "c"}}}},
			log:     "who;queued;runtime;GPUs\n\"a;b\";10;1-00:00:30;2\nc;5;60;1\n\"said \"\"c\"\"\";5;60;1\n\"open;5;60;1\nc;;60;1\nc;1;60;1\"x\nc;1;0;1\nc;x;1;1\n",
			want:    "name,submit_s,duration_s,replicas,tenant\njob-000001,5,60,1,c\njob-000000,10,86430,2,a;b\n",
			dropped: map[string]int{"who is not a;b or c": 1, "text follows a closing quote": 1, "submit_s is not known": 1, "replicas cannot be read": 1, reasonNoTime: 1, "submit_s cannot be read": 1},
		},
		"starts that are computed": {
			from: CSV,
			log: "name,submit_s,end_s,duration_s,replicas\na,0.1,0.7,0.6,1\nb,0,0.7,0.6,1\nc,0.1,0.5,0.6,1\nd,0.1234562,0.7234562,0.6,1\n" +
				"e,0.2,0.7,0.6,1\n",
			want:    "name,submit_s,duration_s,replicas,observed_start_s\nb,0,0.6,1,0.1\na,0.1,0.6,1,0.1\nd,0.1234562,0.6,1,0.1234562\n",
			dropped: map[string]int{reasonEarly: 2},
		},
		"clocks that were not set": {
			from:    CSV,
			log:     "name,submit_s,duration_s,replicas\na,0,60,1\nb,1767600010,60,1\nc,1767600000,60,1\nd,1970-01-02T00:00:00,60,1\ne,1767600020,60,1\n",
			want:    "name,submit_s,duration_s,replicas\nc,0,60,1\nb,10,60,1\ne,20,60,1\n",
			dropped: map[string]int{reasonEpoch: 2},
		},
		"a clock that was set to another decade": {
			from:    CSV,
			log:     "name,submit_s,duration_s,replicas\na,100000000,60,1\nb,1767600010,60,1\nc,1767600000,60,1\nd,300000000,60,1\ne,1767600020,60,1\nf,1767600030,60,1\n",
			want:    "name,submit_s,duration_s,replicas\nc,0,60,1\nb,10,60,1\ne,20,60,1\nf,30,60,1\n",
			dropped: map[string]int{reasonEpoch: 2},
		},
		"most clocks were not set": {
			from:    CSV,
			log:     "name,submit_s,duration_s,replicas\na,0,60,1\nb,1767600010,60,1\nc,5,60,1\nd,1767600020,60,1\n",
			want:    "name,submit_s,duration_s,replicas\na,0,60,1\nc,5,60,1\nb,1767600010,60,1\nd,1767600020,60,1\n",
			dropped: map[string]int{},
		},
		"ten years without a calendar": {
			from:    CSV,
			log:     "name,submit_s,duration_s,replicas\na,0,60,1\nb,9e7,60,1\nc,1.5e8,60,1\nd,2e8,60,1\ne,2.5e8,60,1\nf,3e8,60,1\n",
			want:    "name,submit_s,duration_s,replicas\na,0,60,1\nb,90000000,60,1\nc,150000000,60,1\nd,200000000,60,1\ne,250000000,60,1\nf,300000000,60,1\n",
			dropped: map[string]int{},
		},
		"jobs.csv of a run": {
			from:    CSV,
			log:     "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome\n0,a,bert,0,5,25,25,5,3.7,1,74,completed\n1,b,bert,1,,,,,,0,0,unfinished\n",
			want:    "name,submit_s,duration_s,replicas,application,observed_start_s,outcome\na,0,20,4,bert,5,completed\n",
			dropped: map[string]int{reasonNotEnded: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.From = tc.from
			trace, counts, err := Import(context.Background(), "log", strings.NewReader(tc.log), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := WriteCSV(&got, trace); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("trace (-want,+got):\n%s", diff)
			}
			dropped := map[string]int{}
			total := counts.Kept
			for _, c := range counts.Dropped {
				dropped[c.Reason] = c.Rows
				total += c.Rows
			}
			if diff := cmp.Diff(tc.dropped, dropped); diff != "" {
				t.Errorf("dropped (-want,+got):\n%s", diff)
			}
			if total != counts.Rows || counts.Kept != trace.Len() {
				t.Errorf("%d rows, %d kept or dropped; %d records of %d kept", counts.Rows, total, trace.Len(), counts.Kept)
			}
		})
	}
}

// What is left of a long log is whole where rows of it are dropped late.
func TestClocksOfALongLog(t *testing.T) {
	const rows = 2*chunk + 10
	var log strings.Builder
	log.WriteString("name,submit_s,duration_s,replicas\n")
	for i := range rows {
		submit := 1767600000 + i
		if i%3 == 0 {
			submit = i
		}
		fmt.Fprintf(&log, "%d,%d,60,1\n", i, submit)
	}
	trace, counts, err := Import(t.Context(), "log", strings.NewReader(log.String()), Options{From: CSV})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for i := range rows {
		if i%3 == 0 {
			continue
		}
		if r := trace.At(want); r.Name != strconv.Itoa(i) || r.Submit != float64(i-1) {
			t.Fatalf("record %d is %q, submitted at %v", want, r.Name, r.Submit)
		}
		want++
	}
	if trace.Len() != want || counts.Kept != want || len(trace.chunks) != 2 || trace.Epoch != 1767600001 {
		t.Errorf("%d kept, %d counted in %d pieces from %v on; want %d", trace.Len(), counts.Kept, len(trace.chunks), trace.Epoch, want)
	}
	if trace.add(&Record{Name: "more"}); trace.At(want).Name != "more" {
		t.Error("a record after them is lost")
	}
}

// A log in the standard workload format counts from the moment that its head names.
func TestSWFSaysWhenItBegan(t *testing.T) {
	const job = "1 5 10 100 4 -1 -1 4 200 -1 1 3 1 7 1 1 -1 -1\n"
	for head, want := range map[string]float64{
		"":                                    0,
		"; UnixStartTime: 0\n":                0,
		"; UnixStartTime: 1767600000\n":       1767600000,
		";UnixStartTime:\t1767600000 \r\n":    1767600000,
		"; Note: x\n;; UnixStartTime: 17e8\n": 17e8,
		"; UnixStartTime: -5\n":               0,
		"; UnixStartTime: yesterday\n":        0,
		"; UnixStartTime: 1e300\n":            0,
	} {
		trace, _, err := Import(t.Context(), "log", strings.NewReader(head+job), Options{From: SWF})
		if err != nil || trace.Epoch != want || trace.At(0).Submit != 5 {
			t.Errorf("%q: %v, from %v on, want %v", head, err, trace.Epoch, want)
		}
	}
	// Times of a calendar say it themselves.
	trace, _, err := Import(t.Context(), "log", strings.NewReader("; UnixStartTime: 3\n"+strings.Replace(job, " 5 ", " 1767600000 ", 1)), Options{From: SWF})
	if err != nil || trace.Epoch != 1767600000 || trace.At(0).Submit != 0 {
		t.Errorf("of a calendar: %v, %+v", err, trace)
	}
}
