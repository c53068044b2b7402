package agent

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// remoteScheme is that of a scheduler on another machine.
const remoteScheme = "tls"

// How long it may take to reach a scheduler on another machine, and for how long one that went without a word is believed to be
// there: what is said meanwhile is repeated to the next.
const (
	dialLimit  = 10 * time.Second
	probeAfter = 5 * time.Second
	probes     = 3
	lostAfter  = probeAfter * (1 + probes)
)

// remoteAddress is the HOST:PORT of tls://HOST:PORT.
func remoteAddress(socket string) (string, error) {
	name, _ := scheme(socket)
	if name != remoteScheme {
		return "", fmt.Errorf("%q: there is no scheme %q, only %s", socket, name, remoteScheme)
	}
	address := socket[len(remoteScheme+"://"):]
	host, port, err := net.SplitHostPort(address)
	if number, wrong := strconv.ParseUint(port, 10, 16); err != nil || host == "" || wrong != nil || number == 0 {
		return "", fmt.Errorf("%q is not %s://HOST:PORT", socket, remoteScheme)
	}
	return address, nil
}

// authorities are the certificates of a text.
func authorities(pem string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		return nil, errors.New("holds no certificate in PEM")
	}
	return pool, nil
}

// readToken is the content of a file without the blanks around it.
func readToken(path string) (string, error) {
	file, err := inputfile.Open(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, 2*maxToken))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := string(bytes.TrimSpace(content))
	if token == "" || len(token) > maxToken {
		return "", fmt.Errorf("read token: %q has %d bytes, must have from 1 to %d", path, len(token), maxToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return !strings.ContainsRune(tokenCharacters, r) }) {
		return "", fmt.Errorf("read token: %q holds something else than a token", path)
	}
	return token, nil
}

// tokenCharacters are those of a bearer token: RFC 6750, section 2.1.
const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// connect opens a connection and makes what to say on it first.
func (c *Client) connect(ctx context.Context) (net.Conn, *Hello, error) {
	e := &c.environment
	hello := &Hello{Protocol: Protocol, Job: e.Job, Rank: e.Rank, Worlds: e.Worlds}
	if _, remote := scheme(e.Socket); !remote {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", e.Socket)
		return conn, hello, err
	}
	address, err := remoteAddress(e.Socket)
	if err != nil {
		return nil, nil, err
	}
	trusted, err := authorities(e.CA)
	if err != nil {
		return nil, nil, err
	}
	if hello.Token, err = readToken(e.Token); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	// The name that the certificate must hold is the host of the address.
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeAfter, Count: probes},
			Control:         notice(lostAfter),
		},
		Config: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: trusted},
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	return conn, hello, err
}

// endWriting says that nothing more comes, and reports whether the connection can: then the other side ends it when it has
// read everything. To close it at once could take from the other side what it has not read yet.
func endWriting(conn net.Conn) bool {
	half, ok := conn.(*tls.Conn)
	return ok && half.CloseWrite() == nil
}

// jitter spreads those who lost the same scheduler: each waits half of what it might, or more.
type jitter struct{ random *rand.Rand }

func newJitter() jitter {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails
	return jitter{rand.New(rand.NewChaCha8(seed))}
}

func (j jitter) of(wait time.Duration) time.Duration {
	return wait/2 + time.Duration(j.random.Int64N(int64(wait/2)+1))
}
