package control

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// authority signs certificates for a test.
type authority struct {
	t      testing.TB
	dir    string
	key    *ecdsa.PrivateKey
	root   *x509.Certificate
	serial int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	a.root = a.sign("authority", a.key, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// sign writes a certificate to the folder.
func (a *authority) sign(name string, key *ecdsa.PrivateKey, template *x509.Certificate) *x509.Certificate {
	a.t.Helper()
	a.serial++
	template.SerialNumber, template.Subject = big.NewInt(a.serial), pkix.Name{CommonName: name}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	parent := a.root
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".crt", "CERTIFICATE", der)
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed
}

func (a *authority) write(name, kind string, der []byte) {
	if err := os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// files makes a key and a certificate and returns them with this authority.
func (a *authority) files(name string, use x509.ExtKeyUsage, notAfter time.Time) TLSFiles {
	a.t.Helper()
	key := a.newKey()
	a.sign(name, key, &x509.Certificate{
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{use}, NotAfter: notAfter,
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".key", "PRIVATE KEY", der)
	return TLSFiles{
		Certificate: filepath.Join(a.dir, name+".crt"), Key: filepath.Join(a.dir, name+".key"), Authority: filepath.Join(a.dir, "authority.crt"),
	}
}

func TestTLS(t *testing.T) {
	f := &fake{}
	s := NewServer(f, NewBoard(cluster()), discard)
	t.Cleanup(func() { must(t, s.Close()) })
	ours, theirs := newAuthority(t), newAuthority(t)
	address, err := serveTLS(t, s, ours.files("server", x509.ExtKeyUsageServerAuth, time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	mine := ours.files("client", x509.ExtKeyUsageClientAuth, time.Time{})
	foreign := theirs.files("client", x509.ExtKeyUsageClientAuth, time.Time{})
	foreign.Authority = mine.Authority
	elsewhere := mine
	elsewhere.Authority = filepath.Join(theirs.dir, "authority.crt")

	config := func(files TLSFiles) *tls.Config {
		t.Helper()
		c, err := files.client()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	call := func(address string, with credentials.TransportCredentials) error {
		c := &Client{}
		if err := c.connect("passthrough:///"+address, with); err != nil {
			t.Fatal(err)
		}
		err := c.Cancel(t.Context(), "a")
		must(t, c.Close())
		return err
	}
	old := config(mine)
	old.MaxVersion, old.MinVersion = tls.VersionTLS12, tls.VersionTLS12
	cases := map[string]struct {
		config *tls.Config
		want   string
	}{
		"no certificate":              {&tls.Config{RootCAs: config(mine).RootCAs}, "certificate required"},
		"a certificate of another":    {config(foreign), "unknown certificate authority"},
		"a server's certificate":      {config(ours.files("other", x509.ExtKeyUsageServerAuth, time.Time{})), "bad certificate"},
		"an expired certificate":      {config(ours.files("old", x509.ExtKeyUsageClientAuth, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))), "expired certificate"},
		"a server of another":         {config(elsewhere), "certificate signed by unknown authority"},
		"a server that is named else": {&tls.Config{RootCAs: config(mine).RootCAs, ServerName: "elsewhere"}, "not elsewhere"},
		"TLS 1.2":                     {old, "protocol version"},
	}
	for name, tc := range cases {
		conn, err := tls.Dial("tcp", address.String(), tc.config)
		if err == nil { // the server looks at the certificate when the client has done its part
			_, err = conn.Read(make([]byte, 1))
			must(t, conn.Close())
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tc.want)
		}
		if err := call(address.String(), credentials.NewTLS(tc.config)); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: a call comes to %v", name, err)
		}
	}
	if err := call(address.String(), insecure.NewCredentials()); status.Code(err) != codes.Unavailable {
		t.Errorf("plain text: %v", err)
	}
	if orders := f.noted(); len(orders) > 0 {
		t.Errorf("the backend is told %q", orders)
	}
	c, err := DialTLS(address.String(), mine)
	if err != nil {
		t.Fatal(err)
	}
	must(t, c.Cancel(t.Context(), "a"))
	must(t, c.Close())
	if orders := f.noted(); len(orders) != 1 {
		t.Errorf("the backend is told %q", orders)
	}
}

func TestTLSFilesAreNamedWhenWrong(t *testing.T) {
	a := newAuthority(t)
	good := a.files("good", x509.ExtKeyUsageServerAuth, time.Time{})
	other := a.files("other", x509.ExtKeyUsageServerAuth, time.Time{})
	cases := map[string]struct {
		files TLSFiles
		want  []string
	}{
		"absent":     {TLSFiles{"c", "k", "a"}, []string{"a: read authority", `c: read certificate with key "k"`}},
		"no pair":    {TLSFiles{good.Certificate, other.Key, good.Authority}, []string{good.Certificate + ": read certificate", "private key does not match"}},
		"a key only": {TLSFiles{good.Certificate, good.Key, good.Key}, []string{good.Key + ": read authority: no certificate in PEM"}},
	}
	s := NewServer(&fake{}, NewBoard(cluster()), discard)
	defer s.Close()
	for name, tc := range cases {
		_, client := DialTLS("localhost:1", tc.files)
		_, server := serveTLS(t, s, tc.files)
		for _, err := range []error{client, server} {
			for _, want := range tc.want {
				if !strings.Contains(diagnostics(err).Error(), want) {
					t.Errorf("%s: %v, want %s", name, err, want)
				}
			}
		}
	}
}

func serveTLS(t *testing.T, s *Server, files TLSFiles) (net.Addr, error) {
	t.Helper()
	l, err := ListenTLS(t.Context(), "127.0.0.1:0", files)
	if err != nil {
		return nil, err
	}
	return l.Addr(), s.ServeTLS(l)
}
