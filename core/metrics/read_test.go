package metrics

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const twoJobs = jobsHeader +
	"0,\"a, \"\"b\"\"\",app,0,1.5,11.5,11.5,1.5,2,1,20,completed\n" +
	"1,c,,2,,,,,,0,0,rejected\n"

func TestReadJobs(t *testing.T) {
	want := []Job{
		{ID: 0, Name: `a, "b"`, Application: "app", FirstStartSeconds: 1.5, FinishSeconds: 11.5, JCTSeconds: 11.5, QueueingSeconds: 1.5, ReplicasMean: 2, Restarts: 1, GPUSeconds: 20, Outcome: "completed"},
		{ID: 1, Name: "c", SubmitSeconds: 2, FirstStartSeconds: unknown, FinishSeconds: unknown, JCTSeconds: unknown, QueueingSeconds: unknown, ReplicasMean: unknown, Outcome: "rejected"},
	}
	for name, text := range map[string]string{
		"as written":    twoJobs,
		"by a newer":    strings.NewReplacer("outcome\n", "outcome,more\n", "completed\n", "completed,x\n", "rejected\n", "rejected,\n").Replace(twoJobs),
		"with a mark":   "\ufeff" + twoJobs,
		"with CR LF":    strings.ReplaceAll(twoJobs, "\n", "\r\n"),
		"no line break": strings.TrimSuffix(twoJobs, "\n"),
	} {
		got, err := ReadJobs(strings.NewReader(text))
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b Number) bool { return a == b || !a.Known() && !b.Known() })); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if got, err := ReadJobs(strings.NewReader(jobsHeader)); got != nil || err != nil {
		t.Errorf("no jobs: %v, %v", got, err)
	}
}

func TestReadJobsRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":         {"", "not even a header"},
		"another file":    {"a,b\n1,2\n", "columns that are missing: job, name, application"},
		"cut in a row":    {twoJobs[:len(twoJobs)-12], "wrong number of fields"},
		"cut in a number": {strings.Replace(twoJobs, "20,completed", "2e,completed", 1), `row 2, gpu_seconds: "2e" is no number`},
		"empty":           {strings.Replace(twoJobs, "app,0,", "app,,", 1), `row 2, submit_s: "" is no number`},
		"negative":        {strings.Replace(twoJobs, "c,,2,", "c,,-2,", 1), `row 3, submit_s: "-2" is no number of at least 0`},
		"not finite":      {strings.Replace(twoJobs, "app,0,", "app,Inf,", 1), `"Inf"`},
		"half a job":      {strings.Replace(twoJobs, "\n1,", "\n1.5,", 1), `row 3, job: "1.5" is no whole number`},
		"an outcome":      {strings.Replace(twoJobs, "rejected", "lost", 1), `row 3, outcome: "lost" is no outcome; valid values: unfinished, completed`},
	} {
		if jobs, err := ReadJobs(strings.NewReader(tc.text)); err == nil || jobs != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v, want %q", name, jobs, err, tc.want)
		}
	}
}

func FuzzReadJobs(f *testing.F) {
	f.Add([]byte(twoJobs))
	f.Fuzz(func(t *testing.T, text []byte) {
		jobs, err := ReadJobs(bytes.NewReader(text))
		if err != nil && jobs != nil {
			t.Error("jobs and an error")
		}
	})
}

func TestSense(t *testing.T) {
	for path, want := range map[string]int{
		"deadlines.met": 1, "deadlines.ratio": 1, "deadlines.broken": -1, "deadlines.lateness_p99": -1, "deadlines.undecided": 0,
		"tiers.premium.ratio": 1, "tiers.standard.jobs_met": 1, "tiers.basic.jobs": 0, "tiers.oversold_seconds": -1, "bill.cost": -1,
		"jct_seconds.mean": -1, "restarts.total": -1, "fairness.sia.mean": -1, "jobs.unfinished": -1, "gpu_hours": -1,
		"utilization_ratio": 1, "jobs.completed": 1, "jobs.submitted": 0, "rounds": 0,
	} {
		if got := Sense(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}
