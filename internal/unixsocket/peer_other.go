//go:build !linux

package unixsocket

import (
	"errors"
	"net"
)

func peer(*net.UnixConn) (int, error) {
	return 0, errors.New("this system does not report the user at the other end of a socket; Quartet supports that on Linux only")
}
