//go:build !linux

package unixsocket

import (
	"errors"
	"net"
)

func peer(*net.UnixConn) (int, error) {
	return 0, errors.New("this system does not tell who is at the other end of a socket; Quartet asks Linux only")
}
