package elasticity

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// pastOf is what is known of an application that ran on so many devices.
func pastOf(name string, batch core.BatchSpec, replicas int) *pastApplication {
	j := trainingJob()
	ran(j, truth, 1, replicas, 64)
	return newPast(name, batch, j.Measured, noisy)
}

// An application of which only the work is known borrows how it scales: from the nearest, of several from the first by name, and
// whatever others found of that one.
func TestWhoIsKnownByItsWorkBorrows(t *testing.T) {
	p := newPool()
	p.applications = []*pastApplication{{name: "app", limits: limits}, pastOf("b", limits, 2), pastOf("c", limits, 4)}
	p.proofs[p.applications[1]] = proof{refuted: 3}
	j := trainingJob()
	got := p.find(j)
	if got == nil || got.name != "b" || got.replicas != 2 || p.proofs[got].refuted != 0 {
		t.Fatalf("it borrows %+v, want what is known of b", got)
	}
	if p.proofs[p.applications[1]].refuted != 3 {
		t.Errorf("b was refuted %d times, and 3 before", p.proofs[p.applications[1]].refuted)
	}
	j.Application = "b"
	if got := p.find(j); got != nil {
		t.Errorf("b itself takes %+v, want nothing: it was refuted", got)
	}
}

// What one job proves wrong, the next one does not take up, however many began with it before.
func TestJobsThatBeginTogetherShareWhatTheyProve(t *testing.T) {
	p := remembering(t, "", nil)
	trained(t, p, "app", truth, limits, 1, 2)
	var jobs []*core.Job
	for id := range 2 {
		j := trainingJob()
		j.ID = core.JobID(id)
		if got := respond(t, p, j); got.MaxReplicas != 4 {
			t.Fatalf("job %d begins with %d replicas, want 4", id, got.MaxReplicas)
		}
		jobs = append(jobs, j)
	}
	ran(jobs[0], slower, 1, 1, 64)
	respond(t, p, jobs[0])
	if got := begins(t, p, "app", limits); got.MaxReplicas != 1 {
		t.Errorf("the next job begins with %d replicas, want 1: it was proved wrong", got.MaxReplicas)
	}
}

// A pool on disk takes in what a run adds, with the number of that run; it is in the order of names, and of too many applications
// it holds those that contributed last.
func TestPoolsAreMerged(t *testing.T) {
	disk, run := newPool(), newPool()
	disk.runs = 7
	for i := range mostApplications {
		a := pastOf(fmt.Sprintf("app %04d", i), limits, 1)
		a.run, a.jobs = 7, 1
		if i < 2 {
			a.run = 6 - i
		}
		disk.applications = append(disk.applications, a)
	}
	run.fresh["a new one"] = pastOf("a new one", limits, 2)
	run.fresh["app 0005"] = pastOf("app 0005", limits, 2)
	run.fresh["app 0005"].jobs = 1
	got := run.merged(disk)
	if len(got) != mostApplications {
		t.Errorf("%d applications, want %d", len(got), mostApplications)
	}
	for i, want := range map[int]struct {
		name      string
		run, jobs int
		seen      int
	}{0: {"a new one", 8, 0, 1}, 1: {"app 0000", 6, 1, 1}, 2: {"app 0002", 7, 1, 1}, 5: {"app 0005", 8, 2, 2}, 6: {"app 0006", 7, 1, 1}} {
		if a := got[i]; a.name != want.name || a.run != want.run || a.jobs != want.jobs || len(a.seen) != want.seen {
			t.Errorf("item %d: %q of run %d with %d jobs and %d measurements, want %+v", i, a.name, a.run, a.jobs, len(a.seen), want)
		}
	}
}

// The work that jobs had is handed on, and what it proved, of the applications that this run taught something of.
func TestTheWorkIsHandedOn(t *testing.T) {
	path, settings := filepath.Join(t.TempDir(), "pool.yaml"), map[string]any{"declared_work": false}
	earlier := remembering(t, path, settings)
	for _, application := range []string{"right", "wrong", "idle"} {
		ends(t, earlier, application, 100, core.Completed)
	}
	closed(t, earlier)
	before, after := remembering(t, path, settings), remembering(t, path, settings)
	ends(t, before, "right", 150, core.Completed)
	ends(t, before, "wrong", 500, core.Completed)
	ends(t, before, "new", 50, core.Failed)
	begins(t, before, "idle", limits)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var told learnedHistory
	if err := json.Unmarshal(learned, &told); err != nil {
		t.Fatal(err)
	}
	var names, believed []string
	for _, w := range told.Work {
		names = append(names, w.Name)
	}
	for _, b := range told.Beliefs {
		believed = append(believed, b.Name)
	}
	if diff := cmp.Diff([]string{"new", "right", "wrong"}, names); diff != "" {
		t.Errorf("work of applications (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"right", "wrong"}, believed[:min(len(believed), 2)]); diff != "" {
		t.Errorf("beliefs in applications (-want +got):\n%s", diff)
	}
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	for _, application := range names {
		was, is := before.pool.work.of(application), after.pool.work.of(application)
		if diff := cmp.Diff(was, is, cmp.AllowUnexported(pastWork{}, ending{}, total{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the work of %q (-before +after):\n%s", application, diff)
		}
	}
	for _, application := range append(names, "idle", "unseen") {
		want, got := begins(t, before, application, limits), begins(t, after, application, limits)
		if want.RemainingWork != got.RemainingWork {
			t.Errorf("%v is left of %q, and %v before", got.RemainingWork, application, want.RemainingWork)
		}
	}
}

// The work of jobs that ended says how much others have to do, after a handover without a file too.
func TestWorkWithoutAFileIsHandedOn(t *testing.T) {
	settings := map[string]any{"declared_work": false}
	before, after := remembering(t, "", settings), remembering(t, "", settings)
	ends(t, before, "app", 500, core.Completed)
	begins(t, after, "unseen", limits)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	want, got := begins(t, before, "unseen", limits), begins(t, after, "unseen", limits)
	if want.RemainingWork != got.RemainingWork {
		t.Errorf("%v is left of an unseen application, and %v before", got.RemainingWork, want.RemainingWork)
	}
}

// A job that had measured nothing yet judges after a handover, once.
func TestWhoJudgedNothingJudgesLater(t *testing.T) {
	before, after := remembering(t, "", nil), remembering(t, "", nil)
	trained(t, before, "app", truth, limits, 1, 2)
	j := trainingJob()
	respond(t, before, j)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	respond(t, after, j)
	ran(j, truth, 1, 1, 64)
	respond(t, after, j)
	if got := after.pool.proofs[after.pool.live["app"]].confirmed; got != 1 {
		t.Errorf("confirmed %d times, want once", got)
	}
}

// A file of a history may tell of applications in any order, and of none; an ending in it took some work and some time.
func TestHistoryFiles(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "pool.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other := strings.Replace(validHistory[strings.Index(validHistory, "    - name"):], "name: app", "name: aaa", 1)
	p, note, err := readPool(write(validHistory + other))
	if err != nil || note != "" || p.named("app") == nil || p.named("aaa") == nil {
		t.Errorf("in another order: %v, noted %q, applications %+v", err, note, p.applications)
	}
	if _, note, err := readPool(write("version: 1\napplications: []\n")); err != nil || note != "it holds no application" {
		t.Errorf("of no application: noted %q, error %v", note, err)
	}
	for ending, fine := range map[string]bool{"work: 1, seconds: 2": true, "work: 0, seconds: 2": false, "work: 1, seconds: 0": false, "work: 1e-300, seconds: 1e-300": true} {
		text := strings.Replace(validHistory, "      measurements:", "      endings: [{"+ending+"}]\n      measurements:", 1)
		_, _, err := readPool(write(text))
		if (err == nil) != fine || err != nil && !strings.Contains(err.Error(), "applications[0].endings[0]: work and seconds must be above 0") {
			t.Errorf("{%s}: error %v", ending, err)
		}
	}
}

// A file that was removed, or is another one by now, is not at its path any more.
func TestStillAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !stillAt(f, path) {
		t.Error("it is not where it was made")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if stillAt(f, path) {
		t.Error("it is where it was removed")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if stillAt(f, path) {
		t.Error("another one is taken for it")
	}
}
