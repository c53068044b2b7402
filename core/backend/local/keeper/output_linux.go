package keeper

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// output is what replicas write, on its way from pipes to files.
type output struct {
	files   []*logFile
	pipes   []*os.File
	copying sync.WaitGroup
}

// to returns what a replica is to write to. It is for the caller to close.
func (o *output) to(l *logFile) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.files, o.pipes = append(o.files, l), append(o.pipes, r)
	o.copying.Go(func() {
		if _, err := io.Copy(l, r); errors.Is(err, os.ErrDeadlineExceeded) {
			_ = r.SetReadDeadline(time.Time{})
			_, _ = io.CopyN(l, r, unread(r)) // l takes all, and it is there
		}
	})
	return w, nil
}

// end takes in what is in the pipes, and says what did not get into the files. All replicas are gone; but somebody else
// who was given a pipe may hold it open, and is not waited for.
func (o *output) end() (warnings []string) {
	for _, r := range o.pipes {
		_ = r.SetReadDeadline(time.Unix(1, 0)) // wakes who waits for more
	}
	o.copying.Wait()
	for i, l := range o.files {
		_ = o.pipes[i].Close() // it was read to the end
		if warning := l.end(); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings
}

// unread is how many bytes are in a pipe.
func unread(pipe *os.File) (bytes int64) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) {
		n, _ := unix.IoctlGetInt(int(fd), unix.TIOCINQ) // every pipe tells
		bytes = int64(n)
	})
	return bytes
}

// OpenOutput opens a file of output for reading, which may be anything by now: a pipe would hold up its reader, a link lead
// elsewhere.
func OpenOutput(path string) (*os.File, error) {
	return inputfile.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
}
