//go:build linux || darwin || freebsd || netbsd || openbsd

package elasticity

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile takes the lock that a file stands for, and returns what gives it back and removes the file. The system takes
// the lock from a process that ends.
func lockFile(path string) (unlock func(), err error) {
	const tries, pause = 600, 50 * time.Millisecond
	for range tries {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && stillAt(f, path) {
			return func() {
				_ = os.Remove(path) // while it is held: who opened it before takes the next one
				_ = f.Close()
			}, nil
		}
		_ = f.Close()
		time.Sleep(pause)
	}
	return nil, fmt.Errorf("another run has held %q for %v", path, tries*pause)
}

// stillAt reports whether a path still names an open file.
func stillAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}
