package agent

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// notice lets a connection fail when what was written is not acknowledged for so long. Without it a machine that went is missed
// after a quarter of an hour.
func notice(after time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		}); err != nil {
			return err
		}
		return failed
	}
}
