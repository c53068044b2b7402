package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// What the end of a run comes to, by the final report of its keeper and what was known of the run.
func TestWhatAnEndComesTo(t *testing.T) {
	t.Parallel()
	const began = "begun" // there is this file, and no final report
	cases := map[string]struct {
		exit  *keeper.Exit // nil for none
		began bool
		job   func(j *job)
		want  core.EventKind
		cause core.Cause
		lost  int // afterwards
	}{
		"done":                     {exit: &keeper.Exit{Outcome: keeper.Finished}, want: core.JobFinished},
		"failed":                   {exit: &keeper.Exit{Outcome: keeper.Failed}, want: core.JobFailed},
		"stopped by somebody":      {exit: &keeper.Exit{Outcome: keeper.Stopped}, want: core.JobInterrupted, cause: core.CauseKilled},
		"stopped when it was done": {exit: &keeper.Exit{Outcome: keeper.Stopped, Codes: []int{0, 0}}, job: func(j *job) { j.done, j.spoke = true, true }, want: core.JobFinished},
		"stopped before it was all done": {
			exit: &keeper.Exit{Outcome: keeper.Stopped, Codes: []int{0, 1}}, job: func(j *job) { j.done, j.spoke = true, true }, want: core.JobInterrupted, cause: core.CauseKilled,
		},
		"finished before it said so":  {exit: &keeper.Exit{Outcome: keeper.Finished}, job: func(j *job) { j.spoke = true }, want: core.JobFailed},
		"hung":                        {exit: &keeper.Exit{Outcome: keeper.Stopped}, job: func(j *job) { j.hung = true }, want: core.JobFailed},
		"lost":                        {began: true, want: core.JobInterrupted, cause: core.CauseKilled, lost: 1},
		"lost again":                  {began: true, job: func(j *job) { j.run.Lost = 1 }, want: core.JobInterrupted, cause: core.CauseKilled, lost: 2},
		"lost a third time":           {began: true, job: func(j *job) { j.run.Lost = 2 }, want: core.JobFailed, lost: 3},
		"lost after a checkpoint":     {began: true, job: func(j *job) { j.run.Lost, j.kept = 2, true }, want: core.JobInterrupted, cause: core.CauseKilled, lost: 1},
		"lost, and then stopped":      {exit: &keeper.Exit{Outcome: keeper.Stopped}, job: func(j *job) { j.run.Lost = 2 }, want: core.JobInterrupted, cause: core.CauseKilled},
		"never began":                 {want: core.JobInterrupted, cause: core.CauseNeverBegan},
		"never began, time and again": {job: func(j *job) { j.run.Lost = 2 }, want: core.JobInterrupted, cause: core.CauseNeverBegan, lost: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := opened(t, dir, realClock{}, commands(command("j", "sleep", "60")))
			seen(t, b)
			apply(t, b, on(0, 1))
			j := b.jobs[0]
			j.run.Keeper.Kill()
			<-j.gone
			folder := b.runFolder(j, j.run.Number)
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			write := func(file string, text []byte) {
				if err := os.WriteFile(filepath.Join(folder, file), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tc.began {
				write(began, nil)
			}
			if tc.exit != nil {
				text, err := json.Marshal(tc.exit)
				if err != nil {
					t.Fatal(err)
				}
				write("exit.json", text)
			}
			if tc.job != nil {
				tc.job(j)
			}
			b.events = nil
			b.ran(j)
			if len(b.events) != 1 || b.events[0].Kind != tc.want || b.events[0].Cause != tc.cause || j.run.Lost != tc.lost {
				t.Errorf("events %+v, lost %d times; want %v because %v, lost %d times", b.events, j.run.Lost, tc.want, tc.cause, tc.lost)
			}
		})
	}
}

// A run that never began has done nothing, whatever its job declares.
func TestARunThatNeverBeganMadeNoProgress(t *testing.T) {
	j := command("j", "sleep", "60")
	j.Spec.TotalWork, j.Process.Checkpoints = 1000, true
	b := opened(t, t.TempDir(), realClock{}, commands(j))
	seen(t, b)
	apply(t, b, on(0, 1))
	mine := b.jobs[0]
	mine.run.Keeper.Kill()
	<-mine.gone
	if err := os.RemoveAll(b.runFolder(mine, 1)); err != nil {
		t.Fatal(err)
	}
	mine.asOf -= 100 // as if it had been given its devices so long ago
	b.ran(mine)
	if mine.progress != 0 {
		t.Errorf("progress %v, want none", mine.progress)
	}
}

func TestFinalReportsAreWaitedFor(t *testing.T) {
	b := &Backend{config: Config{Speedup: 2}}
	j := &job{watch: watch{connected: true}}
	if !b.saysMore(j, 10) || j.lingers != 12 {
		t.Errorf("it lingers until %v, want 12", j.lingers)
	}
	for now, want := range map[float64]bool{11.9: true, 12: false, 13: false} {
		if got := b.saysMore(j, now); got != want {
			t.Errorf("at %v s: says more %v, want %v", now, got, want)
		}
	}
	if b.saysMore(&job{}, 10) {
		t.Error("one that is not connected says more")
	}
}

// Output that was removed before it was read is not passed over in silence, and what is kept is read in order.
func TestRemovedOutputIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		then map[string]string // files after the next look
		want string
	}{
		"nothing is renamed": {map[string]string{"0.out": "a\nmore\n"}, "a\nmore\n"},
		"once":               {map[string]string{"0.out": "c\n", "0.out.1": "a\nb\n"}, "a\nb\nc\n"},
		"twice":              {map[string]string{"0.out": "d\n", "0.out.1": "c\n", "0.out.2": "a\nb\n"}, "a\nb\nc\nd\n"},
		"out of sight":       {map[string]string{"0.out": "z\n", "0.out.1": "y\n"}, "a\n" + removedMeanwhile + "y\nz\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "0.out")
			if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			r := logReader{path: path, to: &got}
			defer r.close()
			if err := r.read(); err != nil {
				t.Fatal(err)
			}
			aside := filepath.Join(dir, "aside")
			if err := os.Rename(path, aside); err != nil {
				t.Fatal(err)
			}
			for file, text := range tc.then {
				at := filepath.Join(dir, file)
				if strings.HasPrefix(text, "a\n") { // the file that is read
					if err := os.Rename(aside, at); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.read(); err != nil {
				t.Fatal(err)
			}
			if got.String() != tc.want {
				t.Errorf("read %q, want %q", got.String(), tc.want)
			}
		})
	}
}
