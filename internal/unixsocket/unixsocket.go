// Package unixsocket serves and opens sockets that are for one user only.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// longestPath is the most that the kernel takes: an address holds 108 bytes, of which the last one is 0.
const longestPath = 107

// made is where a socket is made, below the folder it moves to.
const (
	madeIn   = ".0123456789" // as os.MkdirTemp names a folder
	madeName = "s"
)

// Listen serves a socket that only this user may open. It takes the place of one that nobody serves any more, and leaves
// removing it to the caller. The folder must exist, and be nobody else's to write to.
func Listen(path string) (*net.UnixListener, error) {
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", path, err)
	}
	return l, nil
}

// listen makes the socket where nobody else can reach it, and moves it to its path when its mode is right.
func listen(path string) (*net.UnixListener, error) {
	longest := max(len(path), len(filepath.Join(filepath.Dir(path), madeIn, madeName)))
	if over := longest - longestPath; over > 0 {
		return nil, fmt.Errorf("the path is %d bytes too long for a socket; choose a folder with a shorter one", over)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close() // nothing was said
		return nil, errors.New("another process serves it")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, errors.New("the file is not a socket")
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	made := filepath.Join(folder, madeName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_ = l.Close() // the other error says why
		return nil, err
	}
	return l, nil
}

// ForeignError says that the other end of a socket belongs to another user.
type ForeignError struct {
	User int // id of the user of the other end
	Self int // id of the user of this process
}

// Error words whose process is at the other end, by the ids of the users.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the other end belongs to user %d, not to user %d", e.User, e.Self)
}

// CheckPeer returns a *ForeignError unless the other end was opened by this user or by root.
func CheckPeer(conn *net.UnixConn) error {
	user, err := peer(conn)
	if err != nil {
		return err
	}
	return trusted(user, os.Geteuid())
}

func trusted(user, self int) error {
	if user != self && user != 0 {
		return &ForeignError{User: user, Self: self}
	}
	return nil
}

// Dial opens a socket that this user or root serves.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
	if over := len(path) - longestPath; over > 0 {
		return nil, fmt.Errorf("open socket %q: the path is %d bytes too long", path, over)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	socket := conn.(*net.UnixConn)
	if err := CheckPeer(socket); err != nil {
		_ = socket.Close() // nothing was said
		return nil, fmt.Errorf("open socket %q: %w", path, err)
	}
	return socket, nil
}

// Guard is a listener that hangs up on everybody but this user and root. Refused is called for each of them, and may be nil.
func Guard(l *net.UnixListener, refused func(error)) net.Listener {
	return &guard{UnixListener: l, refused: refused}
}

type guard struct {
	*net.UnixListener
	refused func(error)
}

func (g *guard) Accept() (net.Conn, error) {
	for {
		conn, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if err = CheckPeer(conn); err == nil {
			return conn, nil
		}
		_ = conn.Close() // nothing was said
		if g.refused != nil {
			g.refused(err)
		}
	}
}
