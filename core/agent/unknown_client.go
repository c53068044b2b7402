package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// unknownClient is a connection that has not said who it is, or is not admitted yet.
type unknownClient struct {
	conn    net.Conn
	machine string
}

// machine is where a connection comes from; all of a unix socket come from one.
func machine(conn net.Conn) string {
	if address, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return address.IP.String()
	}
	return ""
}

// foremost returns the index of the oldest unknown client of the machine that has most of them, of several the one that came first.
func foremost(all []unknownClient) (oldest int) {
	count := make(map[string]int)
	for _, s := range all {
		count[s.machine]++
	}
	for i, s := range all {
		if count[s.machine] > count[all[oldest].machine] {
			oldest = i
		}
	}
	return oldest
}

// shakeHands begins TLS, where it is spoken.
func shakeHands(ctx context.Context, conn net.Conn) error {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	err := secured.HandshakeContext(ctx)
	var plain tls.RecordHeaderError
	var network *net.OpError
	switch {
	case errors.As(err, &plain) && plain.Conn != nil:
		return &plainError{plain.Conn}
	case errors.As(err, &network) && (network.Op == "remote error" || network.Op == "local error"):
		return fmt.Errorf("TLS handshake: %s: %w", network.Op, network.Err) // not of the network, but of TLS
	case err != nil:
		return fmt.Errorf("TLS handshake: %w", err)
	}
	return nil
}

// plainError is that of a client that does not speak TLS, and is told so in plain text.
type plainError struct{ conn net.Conn }

func (e *plainError) Error() string { return "this port speaks TLS only" }

// notAdmitted is the refusal of an error of an Admit. Whatever that says, the token is not repeated.
func notAdmitted(h Hello, err error) error {
	text := err.Error()
	if h.Token != "" {
		text = strings.ReplaceAll(text, h.Token, "TOKEN")
	}
	return fmt.Errorf("job %q, rank %d, is not admitted: %s", h.Job, h.Rank, text)
}

// refuse tells the other side what it did wrong, if it listens.
func refuse(conn net.Conn, err error) {
	if err = spoken(err); err == nil {
		return
	}
	limit := time.AfterFunc(refuseLimit, func() { hangUp(conn) })
	defer limit.Stop()
	if plain, ok := errors.AsType[*plainError](err); ok {
		conn = plain.conn
	}
	_ = writeLine(conn, ToJob{Refused: &Refused{Message: err.Error()}}) // it may be gone
}

// linger waits until the other side has read why it was refused, or a second has passed: a connection of TCP that is closed while
// something is there to be read takes with it what was written.
func linger(conn net.Conn, err error) {
	if spoken(err) == nil {
		return
	}
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn()
	}
	half, ok := conn.(*net.TCPConn)
	if !ok || half.CloseWrite() != nil {
		return
	}
	limit := time.AfterFunc(refuseLimit, func() { hangUp(conn) })
	defer limit.Stop()
	_, _ = io.Copy(io.Discard, half) // whatever it says
}

// spoken is an error that is about what was said, and nil for one that the end of a connection brings.
func spoken(err error) error {
	var network *net.OpError
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network) {
		return nil
	}
	return err
}
