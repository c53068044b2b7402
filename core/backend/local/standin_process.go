package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// StandInIfAsked ends the program as a replica of a job that has no command if it was started as one. A program with this
// backend does it first, after KeepIfAsked.
func StandInIfAsked(clock Clock) {
	path := os.Getenv(standInVariable)
	if path == "" {
		return
	}
	code, err := standIn(path, clock)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
	}
	syscall.Exit(code) // at once, as a keeper does
}

// The exit codes of a stand-in.
const (
	standInDone    = 0
	standInFailed  = 1
	standInStopped = 75 // it goes on later
)

// How often a stand-in says how far it is, at least and at most, and how often the others look whether rank 0 is done.
const (
	reportEvery  = time.Second
	reportAtMost = 100 * time.Millisecond
	lookForDone  = 20 * time.Millisecond
)

// The files of a stand-in: what it did, and in the folder where replicas meet, that all is done.
const (
	progressFile = "progress.json"
	doneFile     = "done"
)

func standIn(path string, clock Clock) (code int, err error) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	env, err := agent.ReadEnvironment(os.LookupEnv)
	if err != nil {
		return standInFailed, err
	}
	done := filepath.Join(env.Rendezvous, doneFile)
	if env.Rank > 0 {
		return awaitDone(done, stop, clock), nil
	}
	s := &pacer{path: path, clock: clock, progress: filepath.Join(env.Checkpoint, progressFile), agent: agent.Dial(env)}
	defer s.agent.Close()
	if err := s.resume(); err != nil {
		return standInFailed, err
	}
	finished, err := s.run(stop)
	switch {
	case err != nil:
		return standInFailed, err
	case !finished:
		return standInStopped, nil
	}
	return standInDone, errors.Join(s.agent.Done(), os.WriteFile(done, nil, 0o600))
}

// awaitDone is all that ranks other than 0 do.
func awaitDone(done string, stop <-chan os.Signal, clock Clock) (code int) {
	for {
		select {
		case <-stop:
			return standInStopped
		case <-clock.After(lookForDone):
		}
		if _, err := os.Stat(done); err == nil {
			return standInDone
		}
	}
}

// pacer is rank 0 of a stand-in.
type pacer struct {
	path, progress string
	clock          Clock
	agent          *agent.Client

	pace     pace
	done     float64   // work
	asOf     time.Time // moment at which so much was done
	reported time.Time
}

func (s *pacer) resume() error {
	err := keeper.ReadFile(s.progress, &s.done)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	s.asOf = s.clock.Now()
	return errors.Join(err, keeper.ReadFile(s.path, &s.pace))
}

// run goes on until the work is done, or it is told to stop.
func (s *pacer) run(stop <-chan os.Signal) (finished bool, err error) {
	for {
		p := s.phase()
		if p == nil {
			return true, s.checkpoint()
		}
		if now := s.clock.Now(); now.Sub(s.reported) >= reportAtMost {
			s.reported = now
			r := p.Report
			r.Progress = s.done
			if err := s.agent.Report(r); err != nil {
				return false, err
			}
		}
		end := s.ends(p)
		select {
		case <-stop:
			s.goOn(p, end)
			return false, s.checkpoint()
		case <-s.clock.After(min(max(end.Sub(s.clock.Now()), 0), reportEvery)):
			s.goOn(p, end)
		case <-s.agent.Received():
			s.goOn(p, end)
			told := s.agent.Poll()
			if told.Checkpoint != nil || told.Stop != nil {
				err = s.checkpoint()
			}
			if told.Tuning != nil {
				err = errors.Join(err, keeper.ReadFile(s.path, &s.pace))
				s.reported = time.Time{}
			}
			if told.Stop != nil || err != nil {
				return false, err
			}
		}
	}
}

// phase is the one at hand; nil when all is done.
func (s *pacer) phase() *phase {
	for i := range s.pace.Phases {
		if p := &s.pace.Phases[i]; s.done < p.End {
			return p
		}
	}
	return nil
}

// ends is when the phase at hand ends; late enough when it does not go on at all.
func (s *pacer) ends(p *phase) time.Time {
	const never = 365 * 24 * 3600
	seconds := (p.End - s.done) / p.Rate / s.pace.Speedup
	if !(seconds < never) {
		seconds = never
	}
	return s.asOf.Add(time.Duration(seconds * float64(time.Second)))
}

// goOn counts the work that was done up to now, at most up to the end of the phase: what is late the next one makes up for.
func (s *pacer) goOn(p *phase, end time.Time) {
	now := s.clock.Now()
	if !now.Before(end) {
		s.done, s.asOf = p.End, end
		return
	}
	s.done += now.Sub(s.asOf).Seconds() * s.pace.Speedup * p.Rate
	s.done, s.asOf = min(s.done, p.End), now
}

func (s *pacer) checkpoint() error {
	if err := writeFile(s.progress, s.done); err != nil {
		return err
	}
	return s.agent.Checkpointed(s.done)
}

// writeFile replaces a file as a whole, and returns once it is on disk.
func writeFile(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(append(text, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
