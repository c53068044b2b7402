//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/testdisk"
)

// scheduling is a scheduler and how its pipeline ends.
func scheduling(t *testing.T, dir string) (*Backend, *watcher, <-chan error) {
	t.Helper()
	b, err := tryOpen(dir, "test", false, realClock{}, &workload.Workload{Open: true})
	if err != nil {
		t.Fatal(err)
	}
	w, ended := &watcher{lines: make(chan string, 10_000)}, make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		err := core.NewPipeline(b.cluster, composition(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}, Observers: []core.Observer{w}}).Run(ctx, b)
		if errors.Is(err, context.Canceled) {
			_ = b.Close() // it may not be able to record its end
		} else if _, err := b.Leave(); err != nil {
			t.Error(err)
		}
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		for range ended { // until it is closed
		}
	})
	return b, w, ended
}

// A scheduler whose disk is full refuses what it cannot keep, then ends. Its jobs run on. When there is room again, the next
// one goes on, with all that was acknowledged.
func TestTheDiskIsFull(t *testing.T) {
	disk := testdisk.New(t, 2<<20)
	dir := filepath.Join(disk, "live")
	b, w, ended := scheduling(t, dir)
	if _, err := submit(b, `{version: 1, jobs: [{name: first, command: [sleep, "60"]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a")
	testdisk.Fill(t, disk, 0)
	acknowledged := []string{"first"}
	var end error
	for i := 0; end == nil; i++ {
		name := fmt.Sprintf("job-%d", i)
		_, err := submit(b, fmt.Sprintf(`{version: 1, jobs: [{name: %s, command: ["true"]}]}`, name))
		switch {
		case err == nil:
			acknowledged = append(acknowledged, name)
		case !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, journal.ErrEnded):
			t.Fatalf("submit: %v, want that there is no room", err)
		}
		if err := b.wanted.Give(context.Background(), func() error {
			b.events = append(b.events, core.Event{Kind: core.NodeChanged, AtSeconds: b.elapsed()}) // calls for a round
			return nil
		}); err != nil {
			end = <-ended
		}
	}
	if !errors.Is(end, syscall.ENOSPC) {
		t.Errorf("ended with %v, want that there is no room", end)
	}
	if strays(dir) == 0 {
		t.Error("the job does not run on")
	}

	if err := os.Remove(filepath.Join(disk, testdisk.Filling)); err != nil {
		t.Fatal(err)
	}
	b, _, _ = scheduling(t, dir)
	if err := b.wanted.Give(context.Background(), func() error {
		if got := b.jobs[0].run.Number; got != 1 {
			t.Errorf("the job that ran on has %d runs, want 1", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Cancel(context.Background(), "first"); err != nil {
		t.Fatal(err)
	}
	for _, name := range acknowledged {
		waitUntilGone(t, b, name) // none of them was lost
	}
}

// A store that cannot be begun or gone on with, as there is no room, is not damaged: nobody is told to throw it away, and with
// room it opens.
func TestNoRoomToOpen(t *testing.T) {
	for _, made := range []bool{false, true} {
		for _, left := range []int{0, 4 << 10, 8 << 10, 12 << 10, 16 << 10, 20 << 10, 32 << 10} {
			disk := testdisk.New(t, 1<<20)
			dir := filepath.Join(disk, "live")
			if made {
				s, err := openStore(dir, false, lockWait)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.close(); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			testdisk.Fill(t, disk, left)
			for _, fresh := range []bool{false, true} {
				s, err := openStore(dir, fresh, lockWait)
				if err == nil {
					if err := s.close(); err != nil {
						t.Fatal(err)
					}
					continue
				}
				_, refused := errors.AsType[core.Diagnostics](err)
				if refused || !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "damaged") {
					t.Errorf("made %v, %d bytes left, fresh %v: %v, want that there is no room", made, left, fresh, err)
				}
			}
			if err := os.Remove(filepath.Join(disk, testdisk.Filling)); err != nil {
				t.Fatal(err)
			}
			s, err := openStore(dir, false, lockWait)
			if err != nil {
				t.Errorf("made %v, %d bytes were left, and there is room: %v", made, left, err)
				continue
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, storeFile+".damaged")); err == nil {
				t.Errorf("made %v, %d bytes were left: the store was set aside", made, left)
			}
		}
	}
}
