package host

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/quartet-sched/quartet/plugins/wire"
)

// socketFolder is the folder for the socket of one plugin. Its host holds a lock in it as long as it lives, so that the
// next host knows which ones were left behind.
type socketFolder struct {
	path string
	lock *os.File
}

const lockName = "host.lock"

// longestTemporary bounds the folder for temporary files: the path of a socket may have no more than 104 bytes on some
// systems, of which plugins need some 40.
const longestTemporary = 60

// temporary is where folders are made.
func temporary() string {
	if folder := os.TempDir(); len(folder) <= longestTemporary {
		return folder
	}
	return "/tmp"
}

// newSocketFolder makes a folder, and removes those of hosts that were killed together with their plugins.
func newSocketFolder() (*socketFolder, error) {
	sweepFolders()
	path, err := os.MkdirTemp(temporary(), wire.SocketFolder)
	if err != nil {
		return nil, err
	}
	f := &socketFolder{path: path}
	unready := filepath.Join(path, lockName+"-")
	if f.lock, err = os.OpenFile(unready, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		if err = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			err = os.Rename(unready, filepath.Join(path, lockName)) // from here on others look at it
		}
	}
	if err != nil {
		f.remove()
		return nil, err
	}
	return f, nil
}

func (f *socketFolder) remove() {
	_ = os.RemoveAll(f.path) // in the folder for temporary files: it is forgotten at worst
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// sweepFolders removes the folders whose host is gone: those that hold a lock that nobody holds.
func sweepFolders() {
	locks, _ := filepath.Glob(filepath.Join(temporary(), wire.SocketFolder+"*", lockName))
	for _, path := range locks {
		lock, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue // another user's, or just removed
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = lock.Close()
	}
}
