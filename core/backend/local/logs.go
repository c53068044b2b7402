package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// followEvery is how often a log is looked at that is followed.
const followEvery = 200 * time.Millisecond

// ReadLog writes what is kept of the output of a replica, and goes on until its job has ended when it is to follow.
func (b *Backend) ReadLog(ctx context.Context, l backend.Log, to io.Writer) error {
	ended, err := b.hasEnded(ctx, l.Job)
	if err != nil {
		return err
	}
	reader := logReader{path: logPath(b.dir, l), to: to}
	defer reader.close()
	for {
		if err := reader.read(); err != nil {
			return err
		}
		if !l.Follow || ended {
			break
		}
		select {
		case <-ctx.Done():
		case <-b.ended:
		case <-time.After(followEvery): // logs are written in the time of this machine
		}
		if ended, err = b.hasEnded(ctx, l.Job); err != nil {
			return errors.Join(reader.read(), err) // a job that ended with its scheduler has no more to say
		}
	}
	return reader.verdict(l)
}

// ReadLogIn writes what is kept of the output of a replica in the folder of a backend, whether a scheduler runs or not.
func ReadLogIn(dir string, l backend.Log, to io.Writer) error {
	names, err := jobsIn(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(names, l.Job) {
		return unknown("job", l.Job, names)
	}
	reader := logReader{path: logPath(dir, l), to: to}
	defer reader.close()
	if err := reader.read(); err != nil {
		return err
	}
	return reader.verdict(l)
}

// jobsIn lists the jobs that have a folder.
func jobsIn(dir string) ([]string, error) {
	path := filepath.Join(dir, "jobs")
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, core.Diagnostics{{Position: core.Position{File: path}, Summary: "no such folder", Hint: "a run on real machines makes it"}}
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func logPath(dir string, l backend.Log) string {
	kind := ".out"
	if l.Stderr {
		kind = ".err"
	}
	return filepath.Join(dir, "jobs", l.Job, "logs", strconv.Itoa(l.Rank)+kind)
}

// hasEnded tells of a job and of its replicas.
func (b *Backend) hasEnded(ctx context.Context, name string) (ended bool, err error) {
	err = b.give(ctx, request{do: func() error {
		j, err := b.job(name)
		ended = err == nil && j.ended && !j.live()
		return err
	}})
	return ended, err
}

// logReader reads a log that grows, and is set aside as PATH.1, then PATH.2 and so on, when it is long.
type logReader struct {
	path  string
	to    io.Writer
	file  *os.File
	begun bool
}

// verdict tells when there was nothing to read.
func (r *logReader) verdict(l backend.Log) error {
	if !r.begun {
		return fmt.Errorf("replica %d of job %q has put out nothing", l.Rank, l.Job)
	}
	return nil
}

// read writes what was added since it was last called.
func (r *logReader) read() error {
	if !r.begun {
		if err := r.readOlder(); err != nil {
			return err
		}
	}
	for {
		if r.file == nil {
			f, err := keeper.OpenOutput(r.path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			r.file, r.begun = f, true
		}
		moved := r.moved() // asked first: what was added before it was set aside is read
		if _, err := io.Copy(r.to, r.file); err != nil {
			return err
		}
		if !moved {
			return nil
		}
		r.close()
	}
}

// readOlder writes what was set aside, the oldest first.
func (r *logReader) readOlder() error {
	last := 0
	for exists(fmt.Sprintf("%s.%d", r.path, last+1)) {
		last++
	}
	for ; last > 0; last-- {
		f, err := keeper.OpenOutput(fmt.Sprintf("%s.%d", r.path, last))
		if err != nil {
			return err
		}
		_, err = io.Copy(r.to, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// moved reports whether the file that is read was set aside.
func (r *logReader) moved() bool {
	mine, err := r.file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(r.path)
	return err == nil && !os.SameFile(mine, now)
}

func (r *logReader) close() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
	}
}
