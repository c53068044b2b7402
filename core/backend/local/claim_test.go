package local

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

func TestDevicesAreClaimed(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "claims")
	refused := func(run, want string, names ...string) {
		t.Helper()
		c, err := claim(folder, run, names, 0)
		if _, told := errors.AsType[core.Diagnostics](err); !told || !strings.Contains(err.Error(), want) {
			t.Errorf("claims %v, error %v, want diagnostics with %q", c, err, want)
		}
	}
	granted := func(run string, names ...string) claims {
		t.Helper()
		c, err := claim(folder, run, names, lockWait)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := granted("/first", idA, idB)
	refused("/first", "device "+idA+" is used by the scheduler of /first", idA) // and so is the same run, when it does not end
	ending := first
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = ending.release()
	}()
	first = granted("/first", idA, idB) // one that is just ending is waited for
	other := granted("/second", idC)
	refused("/second", "device "+idB+" is used by the scheduler of /first", idB, idD)
	_ = granted("/third", idD).release() // what was refused holds nothing
	if err := errors.Join(first.release(), other.release()); err != nil {
		t.Fatal(err)
	}
	_ = granted("/second", idA, idB, idC).release()

	// Jobs that outlive their scheduler keep their devices.
	dir := t.TempDir()
	b := opened(t, dir, realClock{}, commands(command("j", "sleep", "60")))
	seen(t, b)
	apply(t, b, on(0, 1))
	_ = granted(dir, idA).release()
	refused("/second", "whose jobs run on without a scheduler", idA)
	_ = granted(dir, idA).release()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	keeper.EndStrays(filepath.Join(dir, "jobs"), nil)
	_ = granted("/second", idA).release()
}
