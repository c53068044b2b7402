package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// A folder with jobs whose store was emptied or removed is no new run: it is refused, and nothing is touched.
func TestAnEmptyStoreIsNoNewRun(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"missing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := commands(command("j", "sleep", "60"))
			b := opened(t, dir, realClock{}, w)
			seen(t, b)
			apply(t, b, on(0, 1))
			checkpoint := filepath.Join(dir, "jobs", "j", "checkpoint", "weights")
			if err := os.WriteFile(checkpoint, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			abandon(t, b)
			defer b.jobs[0].run.Keeper.Kill()
			if err := lose(filepath.Join(dir, storeFile)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what refuses it does not make it a store
				_, err := tryOpen(dir, "test", false, realClock{}, w)
				if _, refused := errors.AsType[core.Diagnostics](err); !refused || !strings.Contains(err.Error(), "1 jobs (j)") || !strings.Contains(err.Error(), "--fresh") {
					t.Errorf("error %v, want what was found and the way on", err)
				}
			}
			if _, err := os.Stat(checkpoint); err != nil || !b.jobs[0].run.Keeper.Alive() {
				t.Errorf("checkpoint: %v; the job runs: %v", err, b.jobs[0].run.Keeper.Alive())
			}
			fresh, err := tryOpen(dir, "test", true, realClock{}, w)
			if err != nil {
				t.Fatal(err)
			}
			if err := fresh.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A scheduler that was killed before it recorded its run left nothing: the next one begins it.
func TestAStoreWithoutARunIsNew(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, storeFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	opened(t, dir, realClock{}, commands())
}
