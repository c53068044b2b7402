package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// place is where a server is found, again and again, by one of the transports.
type place struct {
	member string // as which the server knows all who connect
	serve  func(t testing.TB, jobs ...string) *Server
	// open is a connection on which nothing was said.
	open func(t testing.TB) net.Conn
	// environment is that of a replica.
	environment func(t testing.TB, job string) Environment
	token       func(job string) string
}

func overEach(t *testing.T, test func(t *testing.T, at *place)) {
	t.Run("unix", func(t *testing.T) { test(t, unixPlace(t)) })
	t.Run("tls", func(t *testing.T) { test(t, tlsPlace(t, newAuthority(t)).place()) })
}

// hello is a first line.
func (p *place) hello(job string, rank int) string {
	token := ""
	if p.token != nil {
		token = fmt.Sprintf(`, "token": %q`, p.token(job))
	}
	return fmt.Sprintf(`{"hello": {"protocol": %d, "job": %q, "rank": %d%s}}`+"\n", Protocol, job, rank, token)
}

func (p *place) dial(t testing.TB, job string, rank int) *Client {
	e := p.environment(t, job)
	e.Rank, e.Replicas, e.Nodes, e.Worlds = rank, rank+1, 1, rank%2 == 1
	c := Dial(e)
	t.Cleanup(c.Close)
	return c
}

func unixPlace(t testing.TB) *place {
	path := socket(t)
	return &place{
		serve: func(t testing.TB, jobs ...string) *Server { return listen(t, path, jobs...) },
		open: func(t testing.TB) net.Conn {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { hangUp(conn) })
			return conn
		},
		environment: func(_ testing.TB, job string) Environment { return Environment{Job: job, Socket: path} },
	}
}

// remote is a port for servers of TLS.
type remote struct {
	authority *authority
	address   string
	admit     Admit
	hello     time.Duration
}

// tokens of a test are the words of a job and its member.
const tokenPrefix = "token-of."

func tokenOf(job, member string) string { return tokenPrefix + job + "." + member }

// byToken admits those whose token was made by tokenOf.
func byToken(_ context.Context, h Hello) (Identity, error) {
	job, member, ok := strings.Cut(strings.TrimPrefix(h.Token, tokenPrefix), ".")
	if !ok || !strings.HasPrefix(h.Token, tokenPrefix) {
		return Identity{}, errors.New("the token is nobody's")
	}
	return Identity{Job: job, Member: member}, nil
}

func tlsPlace(t testing.TB, a *authority) *remote {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	must(t, l.Close())
	return &remote{authority: a, address: l.Addr().String(), admit: byToken, hello: helloLimit}
}

// start is a server at the port, which nobody may have taken meanwhile.
func (r *remote) start(t testing.TB, jobs ...string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.authority.issue(t)}}), r.admit)
	s.hello = r.hello
	s.work.Go(s.accept)
	t.Cleanup(func() { must(t, s.Close()) })
	for _, job := range jobs {
		s.Expect(job)
	}
	return s
}

func (r *remote) environment(t testing.TB, job, member string) Environment {
	path := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(path, []byte(tokenOf(job, member)+"\n"), 0o600))
	return Environment{Job: job, Replicas: 1, Nodes: 1, Socket: "tls://" + r.address, CA: r.authority.pem, Token: path}
}

func (r *remote) open(t testing.TB) net.Conn {
	t.Helper()
	trusted, err := authorities(r.authority.pem)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", r.address, &tls.Config{RootCAs: trusted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(conn) })
	return conn
}

func (r *remote) plain(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(conn) })
	return conn
}

func (r *remote) dial(t testing.TB, job, member string, rank int) *Client {
	e := r.environment(t, job, member)
	e.Rank, e.Replicas = rank, rank+1
	c := Dial(e)
	t.Cleanup(c.Close)
	return c
}

func (r *remote) place() *place {
	return &place{
		member: "m", serve: r.start, open: r.open,
		environment: func(t testing.TB, job string) Environment { return r.environment(t, job, "m") },
		token:       func(job string) string { return tokenOf(job, "m") },
	}
}

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

// The years in which the certificates of tests hold.
var (
	longAgo = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	farOff  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

func newAuthority(t testing.TB) *authority { return authorityUntil(t, farOff) }

func authorityUntil(t testing.TB, end time.Time) *authority {
	a := &authority{key: newKey(t)}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: longAgo, NotAfter: end, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate.Subject.CommonName = "test"
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue is a certificate for this machine.
func (a *authority) issue(t testing.TB) tls.Certificate {
	key := newKey(t)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: longAgo, NotAfter: farOff, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
