//go:build linux || darwin || freebsd || netbsd || openbsd

package engine

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockFolder takes the lock of a folder, which the system takes from a process that ends. The lock is nil where the folder or its
// file system takes none, and busy is true where a process that lives holds it. The error is that of a folder that is not there.
func lockFolder(dir string) (lock *os.File, busy bool, err error) {
	for {
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		} else if err != nil {
			return nil, false, nil
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			_ = f.Close()
			return nil, errors.Is(err, syscall.EWOULDBLOCK), nil
		}
		if stillAt(f, dir) {
			return f, false, nil
		}
		_ = f.Close() // whoever held it before removed the folder
	}
}

// stillAt reports whether a path still names an open folder.
func stillAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}
