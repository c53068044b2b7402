package keeper

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Wait returns when a process is gone, child of this one or not. It costs nothing meanwhile where the system reports it.
func (id Identity) Wait() {
	if fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK); err == nil {
		id.waitFor(os.NewFile(uintptr(fd), "process"))
	}
	for id.Alive() { // the system cannot tell, or told early
		time.Sleep(lookAgain)
	}
}

func (id Identity) waitFor(f *os.File) {
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil || !id.Alive() { // asked once the file holds on to its process: numbers are used again
		return
	}
	_ = conn.Read(func(fd uintptr) bool { // what goes wrong is looked after by the caller
		ready, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return ready != 0
	})
}
