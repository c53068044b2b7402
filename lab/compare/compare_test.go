package compare_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/compare"
)

const header = "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome\n"

// run is what the folder of a run is made of.
type run struct {
	seed       uint64
	allocation string
	nodes      int
	file       string    // that the workload is read from; empty for a generated one
	content    string    // of that file
	times      []float64 // completion times of jobs submitted every 10 s; 0 for one that is unfinished, -1 for a rejected one
}

func (r run) write(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("%s-%d-%d", r.allocation, r.seed, len(r.times)))
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	s := metrics.Summary{Schema: metrics.SummarySchema, Name: r.allocation, Seed: r.seed}
	jobs := header
	var done, waits []float64
	last := 0.0
	for i, jct := range r.times {
		submit := 10 * float64(i)
		s.Jobs.Submitted++
		switch {
		case jct > 0:
			s.Jobs.Completed++
			done, waits = append(done, jct), append(waits, jct/2)
			last = max(last, submit+jct)
			jobs += fmt.Sprintf("%d,job %d,,%v,%v,%v,%v,%v,1,0,%v,completed\n", i, i, submit, submit+jct/2, submit+jct, jct, jct/2, jct/2)
		case jct < 0:
			s.Jobs.Rejected++
			jobs += fmt.Sprintf("%d,job %d,,%v,,,,,,0,0,rejected\n", i, i, submit)
		default:
			s.Jobs.Unfinished++
			last = max(last, 1000)
			jobs += fmt.Sprintf("%d,job %d,,%v,,,,,,0,0,unfinished\n", i, i, submit)
		}
	}
	s.JCTSeconds, s.QueueingSeconds = metrics.Describe(done), metrics.Describe(waits)
	s.MakespanSeconds, s.UtilizationRatio = metrics.Number(last), 0.5
	unknown := metrics.Number(math.NaN())
	s.GPUHours, s.Fairness, s.GapRatio = unknown, metrics.Fairness{RhoMean: unknown, RhoMax: unknown, UnfairRatio: unknown}, metrics.Gap{Mean: unknown, Max: unknown}
	sum := sha256.Sum256([]byte(jobs))
	workload := fmt.Sprintf("{type: generated, config: {jobs: %d}}", len(r.times))
	m := quartet.Manifest{
		Schema: quartet.ManifestSchema, Name: r.allocation, Seed: r.seed, Quartet: "v1", Commit: "c", Inputs: []quartet.Digest{},
		Outputs: []quartet.Digest{{File: "jobs.csv", SHA256: hex.EncodeToString(sum[:])}},
	}
	if r.file != "" {
		workload = fmt.Sprintf("{type: csv, config: {path: %s}}", r.file)
		sum := sha256.Sum256([]byte(r.content))
		m.Inputs = append(m.Inputs, quartet.Digest{File: r.file, SHA256: hex.EncodeToString(sum[:])})
	}
	m.Config = fmt.Sprintf("version: 1\nname: %s\nseed: %d\ncluster: {nodes: [{name: n, count: %d}]}\nworkload: %s\npipeline: {allocation: {type: %s, config: {a: 1}}}\noutput: {dir: %s}\n",
		r.allocation, r.seed, max(r.nodes, 1), workload, r.allocation, dir)
	writeJSON(t, filepath.Join(path, "manifest.json"), m)
	writeJSON(t, filepath.Join(path, "summary.json"), s)
	writeFile(t, filepath.Join(path, "jobs.csv"), jobs)
	return path
}

func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(text))
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) *compare.Side {
	t.Helper()
	s, err := compare.ReadSide(path, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compared(t *testing.T, c compare.Choice, paths ...string) *compare.Result {
	t.Helper()
	r, err := tried(t, c, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tried(t *testing.T, c compare.Choice, paths ...string) (*compare.Result, error) {
	t.Helper()
	var sides []*compare.Side
	for _, path := range paths {
		sides = append(sides, read(t, path))
	}
	return compare.Compare(sides[0], sides[1:], c)
}

// rowOf is the headline row of a metric.
func rowOf(t *testing.T, r *compare.Result, metric string) compare.Row {
	t.Helper()
	for _, row := range r.Rows {
		if row.Metric == metric && row.Headline {
			return row
		}
	}
	t.Fatalf("there is no row of %s", metric)
	return compare.Row{}
}

// many are completion times that vary.
func many(n int, factor float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = factor * (100 + 30*math.Sin(float64(i*i)))
	}
	return list
}

func TestTwoRuns(t *testing.T) {
	dir := t.TempDir()
	fifo, srtf := run{seed: 1, allocation: "fifo", times: many(60, 1)}, run{seed: 1, allocation: "srtf", times: many(60, 0.5)}
	srtf.times[7] = 1000
	a, b := fifo.write(t, dir), srtf.write(t, dir)
	r := compared(t, compare.Choice{Jobs: 2}, a, b)
	o := r.Others[0]
	if diff := cmp.Diff([]compare.Difference{{What: "pipeline.allocation.type", Base: "fifo", Other: "srtf", Pairs: 1}}, o.Composition); diff != "" || o.Inputs != nil {
		t.Errorf("composition (-want +got):\n%s; inputs %v", diff, o.Inputs)
	}
	mean := rowOf(t, r, "jct_seconds.mean")
	if mean.Method != stats.MethodBlocks || mean.Jobs != 60 || mean.N != 1 || !mean.Interval.Known() || math.Abs(mean.Other/mean.Base-1-mean.Change) > 1e-12 {
		t.Errorf("got %+v", mean)
	}
	for metric, why := range map[string]string{"jct_seconds.p50": compare.OneWorkload, "utilization_ratio": compare.Same, "queueing_seconds.mean": mean.Why} {
		if row := rowOf(t, r, metric); row.Why != why {
			t.Errorf("%s is %q, want %q", metric, row.Why, why)
		}
	}
	if len(o.Gained) != 2 || len(o.Lost) != 1 || o.Lost[0].Name != "job 7" || !(o.Gained[0].Change() < o.Gained[1].Change()) {
		t.Errorf("gained %v, lost %v", o.Gained, o.Lost)
	}
	// The same run twice has nothing to show.
	for _, row := range compared(t, compare.Choice{Jobs: 2}, a, a).Rows {
		if row.Why != compare.Same || row.Change != 0 {
			t.Errorf("%s of the same run: %+v", row.Metric, row)
		}
	}
}

func TestFewJobs(t *testing.T) {
	dir := t.TempDir()
	for n, want := range map[int]string{0: compare.Unknown, 1: compare.FewJobs, 19: compare.FewJobs} {
		a, b := run{seed: 1, allocation: "fifo", times: many(n, 1)}, run{seed: 1, allocation: "srtf", times: many(n, 2)}
		r := compared(t, compare.Choice{Metrics: []string{"jct_seconds.mean"}}, a.write(t, dir), b.write(t, dir))
		if row := rowOf(t, r, "jct_seconds.mean"); row.Why != want {
			t.Errorf("%d jobs: %+v, want %q", n, row, want)
		}
		_, err := r.Judge([]compare.Threshold{{Metric: "jct_seconds.mean", Limit: 0.02, Part: true}}, false)
		if (err != nil) != (n == 0) {
			t.Errorf("%d jobs: judged with %v", n, err)
		}
	}
}

// Jobs that did not complete are never dropped: a run that leaves the long ones has the shorter mean, and passes no gate by it.
func TestUnfinishedJobs(t *testing.T) {
	dir := t.TempDir()
	a, b := run{seed: 1, allocation: "fifo", times: []float64{100, 200, 300, 600}}, run{seed: 1, allocation: "srtf", times: []float64{100, 200, -1, 0}}
	r := compared(t, compare.Choice{Judged: []string{"jct_seconds.mean", "jct_seconds.restricted_mean"}}, a.write(t, dir), b.write(t, dir))
	if e := r.Others[0].Ends; e.LeftOther != 2 || e.LeftBase != 0 || strings.Join(e.OnlyBase, ",") != "job 2,job 3" || e.OnlyOther != nil {
		t.Errorf("ends %+v", e)
	}
	if row := rowOf(t, r, "jct_seconds.mean"); row.Base != 300 || row.Other != 150 || row.Why != compare.OtherJobs {
		t.Errorf("mean %+v", row)
	}
	if row := rowOf(t, r, "jct_seconds.common_mean"); row.Base != 150 || row.Other != 150 || row.Why != compare.Same {
		t.Errorf("common mean %+v", row)
	}
	// All jobs of the base were watched for 600 s. In the other run, a job never completes, and one was watched for 970 s.
	if row := rowOf(t, r, "jct_seconds.restricted_mean"); row.Base != 300 || row.Other != (100+200+600+600)/4. {
		t.Errorf("restricted mean %+v", row)
	}
	verdicts, err := r.Judge([]compare.Threshold{{Metric: "jct_seconds.mean", Limit: 0.02, Part: true}, {Metric: "jct_seconds.restricted_mean", Limit: 0.02, Part: true}}, false)
	if err != nil || len(verdicts) != 2 || !verdicts[0].Failed || !strings.Contains(verdicts[0].Why, "other jobs completed") || !verdicts[1].Failed || verdicts[1].Why != "above" {
		t.Errorf("verdicts %+v, %v", verdicts, err)
	}
}

// folder writes a run for each seed into a folder.
func folder(t *testing.T, allocation string, factors ...float64) string {
	t.Helper()
	dir := t.TempDir()
	for i, factor := range factors {
		run{seed: uint64(i + 1), allocation: allocation, times: many(30+i, factor)}.write(t, dir)
	}
	return dir
}

func TestFoldersOfRuns(t *testing.T) {
	a, b := folder(t, "fifo", 1, 1, 1, 1, 1), folder(t, "srtf", 0.8, 0.82, 0.79, 0.81, 0.8)
	same := folder(t, "las", 1.01, 0.99, 1, 1.02, 0.98)
	r := compared(t, compare.Choice{}, a, b, same)
	want, err := stats.Compare([]float64{0.8, 0.82, 0.79, 0.81, 0.8}, []float64{1, 1, 1, 1, 1}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if row := rowOf(t, r, "jct_seconds.mean"); row.N != 5 || row.Method != stats.MethodPaired || row.Why != compare.Shown ||
		math.Abs(row.Change-want.Change) > 1e-9 || math.Abs(row.Interval.Low-want.T.Low) > 1e-9 || math.Abs(row.P-want.P) > 1e-9 || row.Holm != 2*row.P {
		t.Errorf("got %+v, want %+v", row, want)
	}
	for _, row := range r.Rows {
		if row.Metric == "jct_seconds.mean" && row.Against == 1 && row.Why != compare.HoldsZero {
			t.Errorf("las: %+v", row)
		}
	}
	// Four are too few.
	r = compared(t, compare.Choice{}, folder(t, "fifo", 1, 1, 1, 1), folder(t, "srtf", 2, 2, 2, 2))
	if row := rowOf(t, r, "jct_seconds.mean"); row.N != 4 || row.Why != compare.FewWorkloads || row.Interval.Known() || math.Abs(row.Change-1) > 1e-9 {
		t.Errorf("four: %+v", row)
	}
}

// A change that one comparison shows may be chance among several.
func TestCorrected(t *testing.T) {
	a := folder(t, "fifo", 1, 1, 1, 1, 1)
	b, c := folder(t, "srtf", 1.08, 1.02, 1.12, 1.04, 1.03), folder(t, "las", 1.1, 1, 0.9, 1.05, 0.98)
	if row := rowOf(t, compared(t, compare.Choice{}, a, b), "jct_seconds.mean"); row.Why != compare.Shown || row.P < 0.025 {
		t.Fatalf("alone: %+v", row)
	}
	if row := rowOf(t, compared(t, compare.Choice{}, a, b, c), "jct_seconds.mean"); row.Why != compare.Corrected {
		t.Errorf("beside another: %+v", row)
	}
}

// Seeds of one trace are no workloads: their runs count once.
func TestSeedsOfOneTrace(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for seed := range uint64(6) {
		run{seed: seed, allocation: "fifo", file: "in.csv", content: "x", times: many(30, 1)}.write(t, a)
		run{seed: seed, allocation: "srtf", file: "moved/in.csv", content: "x", times: many(30, 2)}.write(t, b)
	}
	r := compared(t, compare.Choice{}, a, b)
	if row := rowOf(t, r, "jct_seconds.mean"); row.N != 1 || row.Why != compare.OneWorkload || math.Abs(row.Change-1) > 1e-9 {
		t.Errorf("got %+v", row)
	}
}

func TestOtherInputs(t *testing.T) {
	trace := run{seed: 1, allocation: "fifo", file: "in.csv", content: "x", times: many(30, 1)}
	cases := map[string]struct {
		other run
		want  string // "" when they are the same
	}{
		"another path":      {run{seed: 1, allocation: "fifo", file: "there/in.csv", content: "x", times: many(30, 1)}, ""},
		"another seed":      {run{seed: 2, allocation: "fifo", file: "in.csv", content: "x", times: many(30, 1)}, ""},
		"another content":   {run{seed: 1, allocation: "fifo", file: "in.csv", content: "y", times: many(30, 1)}, "in.csv: sha256 "},
		"another cluster":   {run{seed: 1, allocation: "fifo", nodes: 2, file: "in.csv", content: "x", times: many(30, 1)}, "cluster.nodes[0].count: 2, in "},
		"more jobs":         {run{seed: 1, allocation: "fifo", file: "in.csv", content: "x", times: many(31, 1)}, "jobs submitted: 31, in "},
		"another generator": {run{seed: 1, allocation: "fifo", times: many(30, 1)}, "workload.type: generated, in "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := trace.write(t, t.TempDir()), tc.other.write(t, t.TempDir())
			r, err := tried(t, compare.Choice{}, a, b)
			if tc.want == "" {
				if err != nil || r.Others[0].Inputs != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasSuffix(err.Error(), "; --unequal-inputs compares all the same") {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if r := compared(t, compare.Choice{Unequal: true}, a, b); len(r.Others[0].Inputs) == 0 {
				t.Error("compared all the same, it does not say what differs")
			}
		})
	}
	// A generated workload of another seed is another one, though its jobs are submitted alike.
	a, b := run{seed: 1, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir()), run{seed: 2, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir())
	if _, err := tried(t, compare.Choice{}, a, b); err == nil || !strings.Contains(err.Error(), "seed: 2, in ") {
		t.Errorf("another seed: %v", err)
	}
}

func TestFoldersThatDoNotMatch(t *testing.T) {
	a, b := folder(t, "fifo", 1, 1, 1), folder(t, "srtf", 1, 1)
	if _, err := tried(t, compare.Choice{}, a, b); err == nil || !strings.Contains(err.Error(), "fifo-3-32 has no partner") {
		t.Errorf("a run alone: %v", err)
	}
	if r := compared(t, compare.Choice{Unequal: true}, a, b); r.Others[0].Pairs != 2 || len(r.Others[0].Unpaired) != 1 {
		t.Errorf("all the same: %+v", r.Others[0])
	}
	run{seed: 9, allocation: "las", times: many(30, 1)}.write(t, b)
	if _, err := tried(t, compare.Choice{}, a, b); err == nil || !strings.Contains(err.Error(), "is another composition than") {
		t.Errorf("two compositions: %v", err)
	}
	// The cluster alone keeps runs apart: the same jobs and seeds are pairs on request.
	c := t.TempDir()
	for i := range 3 {
		run{seed: uint64(i + 1), allocation: "fifo", nodes: 3, times: many(30+i, 2)}.write(t, c)
	}
	if _, err := tried(t, compare.Choice{}, a, c); err == nil || !strings.Contains(err.Error(), "cluster.nodes[0].count: 3") {
		t.Errorf("another cluster: %v", err)
	}
	if r := compared(t, compare.Choice{Unequal: true}, a, c); r.Others[0].Pairs != 3 || rowOf(t, r, "jct_seconds.mean").N != 3 {
		t.Errorf("all the same: %+v", r.Others[0])
	}
}

func TestBrokenFolders(t *testing.T) {
	whole := run{seed: 1, allocation: "fifo", times: many(30, 1)}
	cases := map[string]struct {
		edit func(t *testing.T, dir string)
		want string // "" when it reads
	}{
		"whole":            {func(*testing.T, string) {}, ""},
		"no manifest":      {remove("manifest.json"), "manifest.json is not there"},
		"no summary":       {remove("summary.json"), "summary.json: is not there"},
		"no jobs":          {remove("jobs.csv"), "jobs.csv: is not there, and the run wrote it"},
		"jobs cut short":   {cut("jobs.csv"), "is not the file that the run wrote"},
		"summary cut":      {cut("summary.json"), "cannot be read whole"},
		"manifest cut":     {cut("manifest.json"), "not a manifest"},
		"empty manifest":   {put("manifest.json", ""), "not a manifest"},
		"another schema":   {put("manifest.json", `{"schema": "quartet.manifest/v9", "config": "a"}`), `schema is "quartet.manifest/v9"`},
		"another summary":  {put("summary.json", `{"schema": "quartet.summary/v9"}`), `schema is "quartet.summary/v9"`},
		"jobs not written": {both(edit(func(m *quartet.Manifest) { m.Outputs = nil }), remove("jobs.csv")), ""},
		"failed":           {edit(func(m *quartet.Manifest) { m.Failed = "no" }), "the run failed: no"},
		"no config":        {edit(func(m *quartet.Manifest) { m.Config = "" }), "holds no config"},
		"bad config":       {edit(func(m *quartet.Manifest) { m.Config = "a: [" }), "read a resolved config"},
		"goes on":          {both(both(remove("manifest.json"), remove("jobs.csv")), both(remove("summary.json"), put(".jobs.csv-123", ""))), "the run has not ended"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := whole.write(t, t.TempDir())
			tc.edit(t, dir)
			for _, path := range []string{dir, filepath.Dir(dir)} { // by itself, and in a folder
				_, err := compare.ReadSide(path, compare.Options{})
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			}
		})
	}
	if _, err := compare.ReadSide(t.TempDir(), compare.Options{}); err == nil || !strings.Contains(err.Error(), "holds neither a run nor runs nor a study") {
		t.Errorf("an empty folder: %v", err)
	}
}

type change = func(t *testing.T, dir string)

func remove(name string) change {
	return func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func cut(name string) change {
	return func(t *testing.T, dir string) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), string(text[:len(text)/2]))
	}
}

func put(name, text string) change {
	return func(t *testing.T, dir string) { writeFile(t, filepath.Join(dir, name), text) }
}

func edit(by func(*quartet.Manifest)) change {
	return func(t *testing.T, dir string) {
		m, err := quartet.LoadManifest(filepath.Join(dir, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		by(m)
		writeJSON(t, filepath.Join(dir, "manifest.json"), m)
	}
}

func both(a, b change) change { return func(t *testing.T, dir string) { a(t, dir); b(t, dir) } }

func TestRunsWithoutJobs(t *testing.T) {
	a := run{seed: 1, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir())
	both(edit(func(m *quartet.Manifest) { m.Outputs = nil }), remove("jobs.csv"))(t, a)
	r := compared(t, compare.Choice{Jobs: 3}, a, a)
	if r.Others[0].Ends.Unknown != 1 || rowOf(t, r, "jct_seconds.mean").Why != compare.Same {
		t.Errorf("got %+v", r)
	}
}
