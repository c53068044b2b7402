package local

import (
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// began are the jobs of the stores of testdata/stores, which are those of schedulers that were killed: one that has ended, one that runs on two devices, one that
// reports its progress, one that waits, one that is yet to come. Two were handed in, of which one was cancelled; a node was drained.
const began = `version: 1
jobs:
  - {name: ended, command: [./job.sh, ended], accelerators: [gpu]}
  - {name: wide, command: [./job.sh, wide], accelerators: [gpu], replicas: 2, retries: 2}
  - {name: trains, command: [./trainer, -model, softmax, -batch, "256", -iterations, "400000000"], accelerators: [gpu], checkpoint: true}
  - {name: waits, command: [./job.sh, waits], accelerators: [gpu], replicas: 2}
  - {name: late, command: [./job.sh, late], accelerators: [gpu], submit: 1h, weight: 2}
`

func workloadOf(t testing.TB, text string) *workload.Workload {
	t.Helper()
	list, err := workload.DecodeJobs("jobs.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].Spec.ID = core.JobID(i)
	}
	return &workload.Workload{Jobs: list}
}

// storeOf puts the store that a version left into a folder.
func storeOf(t testing.TB, version string) (dir string) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "stores", version+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, storeFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func storedCluster() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"gpu", "other"}, Nodes: []core.Node{
		{ID: 0, Name: "m-0", Devices: 2}, {ID: 1, Name: "m-1", Devices: 2}, {ID: 2, Name: "spare", Devices: 1, Accelerator: 1},
	}}
}

func openStored(t testing.TB, dir string, w *workload.Workload) (*Backend, error) {
	t.Helper()
	o := coretest.Component(New(realClock{}), nil, discard).(*Opener)
	o.For(Run{Dir: dir, Program: "today"})
	b, err := o.Open(t.Context(), storedCluster(), w)
	if err != nil {
		return nil, err
	}
	return b.(*Backend), nil
}

// The stores of earlier versions are resumed: nothing is lost, and nothing is begun again by that.
func TestStoresOfEarlierVersions(t *testing.T) {
	for _, version := range []string{"72641718", "d34137dd", "64591ee1"} {
		t.Run(version, func(t *testing.T) {
			dir := storeOf(t, version)
			for range 2 { // as the version left it, and as this program leaves it
				b, err := openStored(t, dir, workloadOf(t, began))
				if err != nil {
					t.Fatal(err)
				}
				variance := 0.0
				for b.journal.Replaying() {
					for _, e := range b.repeat().Events {
						variance = max(variance, e.Gradients.Variance)
						if e.Kind == core.JobMeasured && e.Gradients.Variance == 0 {
							t.Errorf("event %+v has no gradients", e)
						}
					}
				}
				got := map[string]string{}
				for _, j := range b.jobs {
					got[j.Spec.Name] = fmt.Sprintf("run %d on %v, submitted %v, ended %v, cancelled %v, got further %v", j.run.Number, j.run.Names, j.submitted, j.ended, j.cancelled, j.progress > 0)
				}
				want := map[string]string{
					"ended":  "run 1 on [0], submitted true, ended true, cancelled false, got further false",
					"wide":   "run 1 on [2 3], submitted true, ended false, cancelled false, got further false",
					"trains": "run 1 on [1], submitted true, ended false, cancelled false, got further true",
					"waits":  "run 0 on [], submitted true, ended false, cancelled false, got further false",
					"late":   "run 0 on [], submitted false, ended false, cancelled false, got further false",
					"handed": "run 0 on [], submitted true, ended false, cancelled false, got further false",
					"gone":   "run 0 on [], submitted true, ended true, cancelled true, got further false",
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("jobs (-want +got):\n%s", diff)
				}
				if b.ordered["spare"] != core.Draining || variance == 0 {
					t.Errorf("node spare is %v, want it drained; the largest variance of a gradient is %v", b.ordered["spare"], variance)
				}
				leave(t, b)
			}
		})
	}
}

// leave lets go of a backend as a scheduler does that dies: what it recorded stays.
func leave(t testing.TB, b *Backend) {
	t.Helper()
	if err := errors.Join(b.agent.Close(), b.letGo()); err != nil {
		t.Fatal(err)
	}
}

// What a run began with is compared by what its owner wrote, and a refusal says in what it differs.
func TestRunsOfOtherJobs(t *testing.T) {
	changed := func(old, with string) string { return strings.Replace(began, old, with, 1) }
	cases := map[string]struct {
		text string
		want []string // parts of the refusal; none for a run that is resumed
		old  bool     // also refused where the version before recorded a digest alone
	}{
		"the same":              {text: began},
		"other order of fields": {text: changed(`{name: waits, command: [./job.sh, waits], accelerators: [gpu], replicas: 2}`, `{replicas: 2, accelerators: [gpu], name: waits, command: [./job.sh, waits]}`)},
		"defaults written out": {text: changed(`submit: 1h, weight: 2`,
			`submit: 60m, weight: 2.0, replicas: 1, min_replicas: 1, max_replicas: 1, pinned: false, cpus: 0, retries: 0, checkpoint: false, tenant: "", best_effort: false, environment: [], batch: {requested: 0}`)},
		"one more": {began + "  - {name: more, command: [\"true\"]}\n", []string{`jobs.yaml:8:6: job "more" is new`, "quartet submit"}, true},
		"one less": {changed("  - {name: waits, command: [./job.sh, waits], accelerators: [gpu], replicas: 2}\n", ""),
			[]string{`job "waits" is missing`, "put it back"}, true},
		"a field of a job that waits": {changed("[./job.sh, waits]", "[./job.sh, other]"),
			[]string{`jobs.yaml:6:6: job "waits" is not as when the run began: command is ["./job.sh","other"], and was ["./job.sh","waits"]`}, true},
		"fields of a job that runs": {changed("replicas: 2, retries: 2", "replicas: 1"),
			[]string{`job "wide" is not as when the run began: replicas is left out, and was 2; retries is left out, and was 2`}, true},
		"a field that was left out": {changed("submit: 1h", "submit: 1h, tenant: x"), []string{`job "late"`, `tenant is "x", and was left out`}, true},
		"a share of a device":       {changed("submit: 1h", "submit: 1h, share_milli: 0"), []string{`job "late"`, `share_milli is {}, and was left out`}, true},
		"a variable":                {changed("submit: 1h", "submit: 1h, environment: [{name: KEY, value: secret}]"), []string{`environment has other variables or values`}, true},
		"a later moment":            {changed("submit: 1h", "submit: 2h"), []string{`submit (seconds) is 7200, and was 3600`}, true},
		"another order": {
			strings.Join([]string{"version: 1", "jobs:", "  - {name: wide, command: [./job.sh, wide], accelerators: [gpu], replicas: 2, retries: 2}", "  - {name: ended, command: [./job.sh, ended], accelerators: [gpu]}", began[strings.Index(began, "  - {name: trains"):]}, "\n"),
			[]string{`job "wide" is where the run began with job "ended": the jobs are the same, in another order`}, true,
		},
		"all at once": {strings.NewReplacer("name: waits", "name: other", "weight: 2", "weight: 3").Replace(began),
			[]string{`job "waits" is missing`, `job "other" is new`, `weight is 3, and was 2`}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b, err := openStored(t, dir, workloadOf(t, began))
			if err != nil {
				t.Fatal(err)
			}
			leave(t, b)
			before := contents(t, dir)
			b, err = openStored(t, dir, workloadOf(t, tc.text))
			if err == nil {
				leave(t, b)
			}
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q in it", err, part)
				}
			}
			if err != nil && (strings.Contains(err.Error(), "fresh") || strings.Contains(err.Error(), "secret")) {
				t.Errorf("error %v suggests to begin anew, or shows a value", err)
			}
			if diff := cmp.Diff(before, contents(t, dir)); err != nil && diff != "" {
				t.Errorf("a refused run is changed (-before +after):\n%s", diff)
			}
			b, err = openStored(t, storeOf(t, "d34137dd"), workloadOf(t, tc.text))
			if err == nil {
				leave(t, b)
			}
			if (err != nil) != tc.old {
				t.Errorf("on the store of an earlier version: error %v, want one: %v", err, tc.old)
			} else if err != nil && (!strings.Contains(err.Error(), "did not record which") || strings.Contains(err.Error(), "fresh")) {
				t.Errorf("on the store of an earlier version: error %v", err)
			}
		})
	}
}

// contents are the digests of the files of a folder.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		list[path] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// A version that recorded no jobs at all is resumed with those whose names and submissions it knows.
func TestRunsOfUnrecordedJobs(t *testing.T) {
	for name, tc := range map[string]struct{ old, with, want string }{
		"a job that ran is missing": {"name: wide", "name: other", `job "wide" ran, and is missing`},
		"a job came too early":      {"name: waits", "submit: 50m, name: waits", `saw the submission of job "waits"`},
		"one that did not run":      {"[./job.sh, waits]", "[./job.sh, other]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeOf(t, "72641718")
			before := contents(t, dir)
			b, err := openStored(t, dir, workloadOf(t, strings.Replace(began, tc.old, tc.with, 1)))
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				leave(t, b)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("a refused run is changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A store of a later version is left as it is, whatever else of it is another.
func TestStoresOfLaterVersions(t *testing.T) {
	later := func(complete bool, bucket string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			s, err := openStore(dir, false, lockWait)
			if err != nil {
				t.Fatal(err)
			}
			if err := journal.Open(s, "test", "").SetMeta(&journal.Meta{Schema: "quartet.state/v2", Program: "v9.1, commit abc", Complete: complete}); err != nil {
				t.Fatal(err)
			}
			if bucket != "" {
				tx, err := s.db.Begin(true)
				if err == nil {
					err = errors.Join(tx.DeleteBucket([]byte(bucket)), tx.Commit())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"unfinished":       later(false, ""),
		"complete":         later(true, ""),
		"without a bucket": later(false, "orders"),
		"with another checksum": func(t *testing.T, dir string) {
			path := filepath.Join(dir, storeFile)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.ReplaceAll(string(text), "quartet.state/v1", "quartet.state/v2"))
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeOf(t, "64591ee1")
			for _, folder := range []string{"jobs/wide/logs", snapshotFolder + "1"} {
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			log := filepath.Join(dir, "jobs/wide/logs/0.out")
			if err := errors.Join(os.WriteFile(log, []byte("hours of work\n"), 0o600), os.WriteFile(filepath.Join(dir, snapshotFolder+"1", "x"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			prepare(t, dir)
			before := contents(t, dir)
			_, err := openStored(t, dir, workloadOf(t, began))
			if err == nil || !strings.Contains(err.Error(), `is of version "quartet.state/v2"`) || !strings.Contains(err.Error(), `reads "quartet.state/v1"`) || strings.Contains(err.Error(), "fresh") || strings.Contains(err.Error(), "damaged") {
				t.Errorf("error %v, want one that names both versions", err)
			}
			if !strings.Contains(name, "checksum") && !strings.Contains(fmt.Sprint(err), "v9.1, commit abc") {
				t.Errorf("error %v, want the program in it", err)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("the folder is changed (-before +after):\n%s", diff)
			}
		})
	}
}

// The identities that earlier versions gave to these jobs, the latest first, as their code worked them out. The first is today's: a field that core.JobSpec gains is
// to be left out where it is zero (omitzero), so that the version before resumes a run that this one began.
func TestIdentitiesOfEarlierVersions(t *testing.T) {
	w := &workload.Workload{Jobs: []workload.Job{
		{Spec: core.JobSpec{ID: 0, Name: "a", Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, Command: []string{"echo", `"Suspended":false,"Tier":"",<&>`}}},
		{
			Spec: core.JobSpec{
				ID: 1, Name: "b", Tenant: "t", Application: "x", Weight: 2, SubmitSeconds: 1.5, Requested: 2, MinReplicas: 1, MaxReplicas: 4, Pinned: true, Accelerators: []string{"v100"},
				Batch: core.BatchSpec{Requested: 128, Initial: 128, Max: 256, MinPerDevice: 1, MaxPerDevice: 64}, CPUs: 2, MemoryGB: 0.5, TotalWork: 1000,
			},
			Process: workload.Process{Dir: "/d", Environment: []workload.Variable{{Name: "A", Value: "1"}}, Retries: 2, Checkpoints: true, Reports: true},
		},
	}}
	got := identitiesBefore(w)
	if got[0] != identityOf(w) {
		t.Errorf("the identity is %s, want the latest one, %s", identityOf(w), got[0])
	}
	want := []string{
		"ffe2dbf5e97d426c237c20dbd397172dbce34ad7962521013e43331a21d01ddc", // d712c150
		"c2a7d55115639e8fd23d0a91ffb42941da8fa96e52a51553eaea852b4d0dcc56", // f8676732
		"a1cbc46aad7e73e877b90484e75608fe025ec618e8fd2c7e9b667c79fc740b2a", // 45b2cf33
		"cc127ef67492a17320fea5e208922fc02fb3ba3503212ec1be871f790639a41e", // c0395c58
		"a82a0b0e0c9c5ab3e7ba8c6dcb629fa77fb3687951762ae8667510454308da34", // ba83765e
		"f856aed8b9fb1bab5aa755e98dfc84dad9f54a525b231f41a296e4d21d57ce40", // 8cf65acf
		"61e88460e70aa7506afd79c8e631c6ed5846569b73e3c1eec4b6c4e0a63276d2", // ab9cecfa
		"6c3e71ec101d846c112da1c70382ea069256bd1d30236b4ab045e1d2b636b846", // f40c14dc
		got[8], // of no commit that was looked at
		"67a11d96172020ac33f8e7c248ab18dd6f46f51fb25c1c0fca30c9662512cb12", // c61df52d
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Jobs[0].Spec.Tier = "premium" // that early versions did not know: nothing is taken for theirs
	if before := identitiesBefore(w); slices.Contains(want, before[len(before)-1]) {
		t.Error("a job with a tier is taken for one of a version without tiers")
	}
}
