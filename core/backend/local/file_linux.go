package local

import (
	"os"
	"syscall"
)

// lock takes the lock of a file, and reports false when another process holds it.
func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }

// unlock gives up the lock of a file, also for those who still map it.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) } // a closed one has none

// ours reports whether a file belongs to the user of this process.
func ours(info os.FileInfo) bool {
	owner, known := info.Sys().(*syscall.Stat_t)
	return known && int(owner.Uid) == os.Geteuid()
}
