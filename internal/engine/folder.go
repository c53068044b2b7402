package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// claim finds the folder for the files of a run: the one that was asked for or, where that holds another run, the first of
// it with a number behind its name that does not. A run that is repeated goes where it was, and what a killed one left is
// removed. What was chosen is noted, unless nothing is there yet. The folder stays locked until release: of two runs that
// begin at the same moment, each finds a folder of its own.
func (e *execution) claim(ctx context.Context) error {
	if e.dir == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(e.dir), 0o755); err != nil {
		return fmt.Errorf("make the output folder: %w", err)
	}
	first, gone := "", 0
	for n := 1; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir := e.dir
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", e.dir, n)
		}
		held, err := e.take(dir)
		switch {
		case errors.Is(err, errGone) && gone < mostGone:
			gone++ // another run that wrote nothing removed it just now
			continue
		case err != nil:
			return err
		case held != "":
			if n == 1 {
				first = held
			}
			n++
			continue
		}
		if n > 1 {
			e.note(fmt.Sprintf("%s holds another run (%s): this one goes to %s", e.dir, first, dir))
		}
		e.dir = dir
		return nil
	}
}

// errGone says that a folder was removed while it was looked at.
var errGone = errors.New("the folder is gone")

// mostGone bounds how often folders may be removed while they are looked at.
const mostGone = 1000

// take makes a folder, or takes one that is there. held says how the run in it differs from this one, where the folder is left alone.
func (e *execution) take(dir string) (held string, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the output folder: %w", err)
	}
	lock, busy, err := lockFolder(dir)
	switch {
	case err != nil:
		if _, there := os.Lstat(dir); there == nil {
			return "", fmt.Errorf("make the output folder: %q leads to nothing: %w", dir, err)
		}
		return "", fmt.Errorf("make the output folder %q: %w", dir, errGone)
	case busy:
		return "one that has not ended", nil
	}
	e.lock = lock
	if held, e.replaced, err = e.held(dir); err == nil && held == "" && lock != nil {
		err = e.removeKilled(dir)
	}
	if err != nil || held != "" {
		e.release()
	}
	return held, err
}

// How long a run that is just ending is waited for, and how often it is looked for.
const (
	folderWait      = 3 * time.Second
	folderLookAgain = 20 * time.Millisecond
)

// occupy locks the folder of a run on real machines, which has no other: while another run writes into it, this one is refused.
func (e *execution) occupy(ctx context.Context) error {
	if e.dir == "" {
		return nil
	}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return fmt.Errorf("make the output folder: %w", err)
	}
	for wait := folderWait; ; wait -= folderLookAgain {
		lock, busy, err := lockFolder(e.dir)
		switch {
		case err != nil:
			return fmt.Errorf("make the output folder: %w", err)
		case !busy:
			e.lock = lock
			return nil
		case wait <= 0:
			return core.Diagnostics{{
				Position: core.Position{File: e.dir}, Summary: "another run writes into this folder",
				Hint: "one at a time: end it, or give the run another name with --name",
			}}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(folderLookAgain):
		}
	}
}

// vacate gives a folder back in which no run began.
func (e *execution) vacate() {
	if e.lock != nil {
		_ = os.Remove(e.dir) // goes only when it is empty
	}
	e.release()
}

// release gives the lock of the folder back.
func (e *execution) release() {
	if e.lock != nil {
		_ = e.lock.Close()
		e.lock = nil
	}
}

// removeKilled removes what a killed run left in a folder that is locked, and notes it.
func (e *execution) removeKilled(dir string) error {
	left, err := leftovers(dir)
	if err != nil || len(left) == 0 {
		return err
	}
	e.note(dir + " holds what a killed run left: this one takes its place")
	return removeLeftovers(dir)
}

// held says how the run in a folder differs from this one, empty when nothing is in the way, and whether it is the same. Files
// that were not finished are of a killed run where the folder is locked.
func (e *execution) held(dir string) (difference string, same bool, err error) {
	m, err := LoadManifest(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		if goesOn(dir) {
			return goingOn, false, nil
		}
		if e.lock != nil {
			return "", false, nil
		}
		if left, err := leftovers(dir); err != nil || len(left) > 0 {
			return "one that has not ended, or was killed", false, err
		}
		return "", false, nil
	}
	if err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return "", false, fmt.Errorf("make the output folder: %w", err)
		}
		return "its manifest cannot be read", false, nil
	}
	if difference, err = e.differs(m); err == nil && difference == "" && goesOn(dir) {
		return goingOn, false, nil
	}
	return difference, difference == "", err
}

// goingOn is how a simulation differs from a run on real machines that was killed, or just begins.
const goingOn = `one on real machines, which "quartet run" resumes`

// goesOn reports whether a folder has what a run on real machines goes on with.
func goesOn(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, liveDir, backend.StoreFile))
	return err == nil
}

// differs says how a recorded run differs from this one; empty when it does not.
func (e *execution) differs(m *Manifest) (string, error) {
	resolved, err := placeless(e.Config).Resolved()
	if err != nil {
		return "", err
	}
	different, err := configs.Differ(resolved, []byte(m.Config))
	b := ReadBuild()
	switch {
	case err != nil:
		return "its config cannot be read", nil
	case len(different) == 1:
		return different[0], nil
	case len(different) > 1:
		return fmt.Sprintf("%s, and %d more", different[0], len(different)-1), nil
	case !slices.Equal(m.Inputs, e.inputs):
		return "with other inputs", nil
	case !slices.Equal(m.Plugins, e.pluginsUsed()):
		return "with other plugins", nil
	case m.Quartet != b.Version || m.Commit != b.Commit:
		return "of another version of the program", nil
	}
	return "", nil
}

// setAside moves the files of an earlier run that has ended to a folder of their own, so that they never stand in for those
// of this one. The files of an interrupted run stay until those of the run that goes on with it take their place.
func (e *execution) setAside() error {
	if e.dir == "" {
		return nil
	}
	m, err := LoadManifest(filepath.Join(e.dir, ManifestFile))
	if err != nil || !e.Fresh && (m.Interrupted || m.Failed != "") {
		return nil // there is none, or this is the same run
	}
	to := ""
	for n := 1; ; n++ {
		to = filepath.Join(e.dir, fmt.Sprintf("earlier-%d", n))
		err := os.Mkdir(to, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("set the results of an earlier run aside: %w", err)
		}
	}
	for _, name := range append([]string{ManifestFile, SummaryFile}, repeatableFiles...) {
		if err := os.Rename(filepath.Join(e.dir, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set the results of an earlier run aside: %w", err)
		}
	}
	e.note(fmt.Sprintf("the results of an earlier run are in %s now", to))
	return nil
}

// noteEarlier notes that the files in the folder are of an earlier run, when this one did not begin.
func (c *Composition) noteEarlier() {
	if c.Dir == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(c.Dir, ManifestFile)); err == nil {
		c.note(fmt.Sprintf("nothing was written: the files in %s are of an earlier run", c.Dir))
	}
}
