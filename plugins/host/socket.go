package host

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lookUp is how long a wait for a plugin lasts before the host looks whether the call was given up.
const lookUp = 20 * time.Millisecond

// socket is the host's end of a channel. It waits in the system: an answer that comes soon, as almost all do, wakes the
// reader sooner than through Go's poller, and a call needs neither a timer nor a goroutine of its own to be given up.
type socket struct {
	file *os.File
	call context.Context // that waits; nil for none
}

// newSocket takes over a descriptor that blocks.
func newSocket(descriptor int) (*socket, error) {
	wait := syscall.NsecToTimeval(lookUp.Nanoseconds())
	for _, option := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
		if err := syscall.SetsockoptTimeval(descriptor, syscall.SOL_SOCKET, option, &wait); err != nil {
			_ = syscall.Close(descriptor)
			return nil, os.NewSyscallError("setsockopt", err)
		}
	}
	return &socket{file: os.NewFile(uintptr(descriptor), "channel")}, nil
}

// Read waits for bytes. It fails with os.ErrDeadlineExceeded when the call was given up.
func (s *socket) Read(p []byte) (n int, err error) {
	for {
		n, err = s.file.Read(p)
		if err = s.waited(err); err != nil || n > 0 || len(p) == 0 {
			return n, err
		}
	}
}

// Write writes everything, or fails like Read.
func (s *socket) Write(p []byte) (written int, err error) {
	for {
		n, err := s.file.Write(p[written:])
		written += n
		if err = s.waited(err); err != nil || written == len(p) {
			return written, err
		}
	}
}

// waited says what an error means: nil to go on waiting.
func (s *socket) waited(err error) error {
	switch {
	case !errors.Is(err, syscall.EAGAIN):
		return err
	case s.call != nil && s.call.Err() != nil:
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// Close ends the channel.
func (s *socket) Close() error { return s.file.Close() }
