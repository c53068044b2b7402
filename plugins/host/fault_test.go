package host_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
)

var update = flag.Bool("update", false, "rewrite the expected messages in testdata")

// golden holds the expected messages of a test, one file of an archive for each case.
type golden struct {
	path string
	mu   sync.Mutex // tests compare in parallel
	want map[string]string
}

func openGolden(t *testing.T, name string) *golden {
	t.Helper()
	g := &golden{path: filepath.Join("testdata", name+".txtar"), want: map[string]string{}}
	archive, err := txtar.ParseFile(g.path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if err == nil {
		for _, f := range archive.Files {
			g.want[f.Name] = string(f.Data)
		}
	}
	t.Cleanup(func() {
		if !*update {
			return
		}
		var archive txtar.Archive
		for _, name := range slices.Sorted(maps.Keys(g.want)) {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(g.want[name])})
		}
		if err := os.WriteFile(g.path, txtar.Format(&archive), 0o644); err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g *golden) compare(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	got := err.Error() + "\n"
	g.mu.Lock()
	defer g.mu.Unlock()
	if *update {
		g.want[name] = got
	}
	if diff := cmp.Diff(g.want[name], got); diff != "" {
		t.Errorf("message -want +got:\n%s", diff)
	}
}

// faulting lists the faults that end a run, by the stage that they are in.
var faulting = map[string]struct {
	stage func(*testing.T, faulty.Config, host.Options) (core.Stages, error)
	limit time.Duration // of a call; 0 for plenty
}{
	"panic":             {stage: faultyAllocation},
	"panic_elsewhere":   {stage: faultyAllocation},
	"exit":              {stage: faultyAllocation},
	"kill":              {stage: faultyAllocation},
	"stop":              {stage: faultyAllocation, limit: 600 * time.Millisecond},
	"hang":              {stage: faultyAllocation, limit: 600 * time.Millisecond},
	"error":             {stage: faultyAllocation},
	"too_many_replicas": {stage: faultyAllocation},
	"unknown_job":       {stage: faultyAllocation},
	"no_job":            {stage: faultyAllocation},
	"huge_job":          {stage: faultyAllocation},
	"twice":             {stage: faultyAllocation},
	"unknown_type":      {stage: faultyAllocation},
	"unknown_reason":    {stage: faultyAdmission},
	"unknown_code":      {stage: faultyAdmission},
	"other_job":         {stage: faultyAdmission},
	"huge":              {stage: faultyAdmission},
}

func TestAFaultIsTold(t *testing.T) {
	t.Parallel()
	messages := openGolden(t, "faults")
	for name, tc := range faulting {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stages, err := tc.stage(t, faulty.Config{Fault: name}, limited(host.Fail, tc.limit))
			if err != nil {
				t.Fatal(err)
			}
			_, err = run(t, stages)
			messages.compare(t, name, err)
		})
	}
}

func TestRestartsAreBounded(t *testing.T) {
	stages, err := faultyAllocation(t, faulty.Config{Fault: "exit"}, quickly(host.Restart))
	if err != nil {
		t.Fatal(err)
	}
	_, err = run(t, stages)
	openGolden(t, "restarts").compare(t, "exit", err)
}

func limited(on host.OnFailure, limit time.Duration) host.Options {
	o := quickly(on)
	if limit > 0 {
		o.CallTimeout = limit
	}
	return o
}

// TestAFaultIsSurvived restarts after a fault that happens once, and falls back after one that happens again and again.
// Whoever takes over decides the same, so that every job ends as if nothing had happened.
func TestAFaultIsSurvived(t *testing.T) {
	t.Parallel()
	want, err := run(t, goodStages())
	if err != nil || len(want) != jobsInWorld {
		t.Fatalf("%d jobs ended, error %v", len(want), err)
	}
	survive := func(t *testing.T, stages core.Stages, err error, trouble host.Trouble) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got, err := run(t, stages)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(trouble, troubleOf(t, stages)); diff != "" {
			t.Errorf("trouble -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("outcomes -undisturbed +disturbed:\n%s", diff)
		}
	}
	for name, tc := range faulting {
		t.Run(name+"/restart", func(t *testing.T) {
			t.Parallel()
			stages, err := tc.stage(t, faulty.Config{Fault: name, Marker: filepath.Join(t.TempDir(), "marker")}, limited(host.Restart, tc.limit))
			survive(t, stages, err, host.Trouble{Restarts: 1})
		})
		t.Run(name+"/fallback", func(t *testing.T) {
			t.Parallel()
			stages, err := tc.stage(t, faulty.Config{Fault: name}, limited(host.Fallback, tc.limit))
			survive(t, stages, err, host.Trouble{Fallback: true})
		})
	}
	for _, harmless := range []string{"", "slow", "print"} {
		t.Run("harmless "+harmless, func(t *testing.T) {
			t.Parallel()
			stages, err := faultyAllocation(t, faulty.Config{Fault: harmless}, quickly(host.Fail))
			survive(t, stages, err, host.Trouble{})
		})
	}
}

// troubleOf is what the faulty stage tells of itself, its words left out once they name the plugin.
func troubleOf(t *testing.T, stages core.Stages) host.Trouble {
	t.Helper()
	for _, policy := range []any{stages.Admission[0].Policy, stages.Allocation.Policy} {
		w, ok := policy.(interface{ Trouble() (host.Trouble, bool) })
		if !ok {
			continue
		}
		trouble, failed := w.Trouble()
		if failed != strings.Contains(trouble.Reason, `plugin "faulty"`) || !strings.HasSuffix(trouble.Component, "/faulty") {
			t.Errorf("%+v, failed: %v", trouble, failed)
		}
		trouble.Component, trouble.Reason = "", ""
		return trouble
	}
	t.Fatal("no stage lives in a process")
	return host.Trouble{}
}
