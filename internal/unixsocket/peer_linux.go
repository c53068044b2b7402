package unixsocket

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peer is the user that opened the other end, as the kernel knows it.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, fmt.Errorf("ask for the user at the other end: %w", failed)
	}
	return int(credentials.Uid), nil
}
