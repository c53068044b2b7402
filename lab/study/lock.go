package study

import (
	"os"
	"syscall"
)

// tryLock takes the lock of a file, which ends with the process, and reports false when another process holds it.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
