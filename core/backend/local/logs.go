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
	"github.com/quartet-sched/quartet/core/backend/journal"
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
		return journal.Unknown("job", l.Job, names)
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
	err = b.wanted.Give(ctx, func() error {
		j, err := b.job(name)
		ended = err == nil && j.ended && !j.live()
		return err
	})
	return ended, err
}

// logReader reads a log that grows, and is set aside as PATH.1, then PATH.2 and so on, when it is long.
type logReader struct {
	path  string
	to    io.Writer
	file  *os.File
	begun bool
}

// verdict says when there was nothing to read.
func (r *logReader) verdict(l backend.Log) error {
	if !r.begun {
		return fmt.Errorf("replica %d of job %s has not written any output", l.Rank, l.Job)
	}
	return nil
}

// read writes what was added since it was last called.
func (r *logReader) read() error {
	for {
		if r.file == nil {
			err := r.open(r.oldest())
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		moved := r.moved() // asked first: what was added before it was set aside is read
		if _, err := io.Copy(r.to, r.file); err != nil {
			return err
		}
		if !moved {
			return nil
		}
		if err := r.next(); err != nil {
			return err
		}
	}
}

func (r *logReader) open(number int) error {
	f, err := keeper.OpenOutput(r.numbered(number))
	if err == nil {
		r.close()
		r.file, r.begun = f, true
	}
	return err
}

// numbered is the path of a file that was set aside; 0 is the one that is written to.
func (r *logReader) numbered(n int) string {
	if n == 0 {
		return r.path
	}
	return fmt.Sprintf("%s.%d", r.path, n)
}

// oldest is the number of the oldest file that is kept.
func (r *logReader) oldest() (number int) {
	for exists(r.numbered(number + 1)) {
		number++
	}
	return number
}

// mostRenames is how often files may be renamed while one is looked for.
const mostRenames = 100

// next goes on with the file after the one that is read, or with the oldest that is kept when that was removed meanwhile.
func (r *logReader) next() error {
	for range mostRenames {
		at := r.number()
		if at == 0 {
			return nil // it is the one that is written to, after all
		}
		before := r.file
		r.file = nil // to be closed when it is known to be the one before
		if at < 0 {
			_ = before.Close() // it was only read
			if _, err := io.WriteString(r.to, removedMeanwhile); err != nil {
				return err
			}
			return ignoreMissing(r.open(r.oldest()))
		}
		err := r.open(at - 1)
		found := r.file
		r.file = before
		if err == nil && r.number() == at { // nothing was renamed meanwhile
			r.close()
			r.file = found
			return nil
		}
		if err == nil {
			_ = found.Close() // it was not read
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.New("the files of the log are renamed faster than they can be read")
}

// removedMeanwhile stands for output that nobody can read any more.
const removedMeanwhile = "\n--- quartet: output is missing here; it was removed by backend.config.log_files before it was read ---\n"

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// number is that of the file that is read; -1 when it was removed.
func (r *logReader) number() int {
	mine, err := r.file.Stat()
	if err != nil {
		return -1
	}
	for n := 0; ; n++ {
		now, err := os.Stat(r.numbered(n))
		if err != nil && n > 0 {
			return -1
		}
		if err == nil && os.SameFile(mine, now) {
			return n
		}
	}
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
