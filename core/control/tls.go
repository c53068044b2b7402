package control

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// TLSFiles are what one side shows to the other, and the authority that must have signed what the other side shows.
type TLSFiles struct {
	Certificate, Key, Authority string // paths of PEM files
}

// load reads the files.
func (f TLSFiles) load() (tls.Certificate, *x509.CertPool, error) {
	var found core.Diagnostics
	wrong := func(file string, err error) {
		found = append(found, core.Diagnostic{Position: core.Position{File: file}, Summary: err.Error()})
	}
	if info, err := os.Stat(f.Key); err == nil && info.Mode().Perm()&0o007 != 0 {
		found = append(found, core.Diagnostic{
			Position: core.Position{File: f.Key}, Summary: "every user may read this key: anyone who did can give orders", Hint: "make a new one, and chmod o= it",
		})
	}
	pair, err := keyPair(f.Certificate, f.Key)
	if err != nil {
		wrong(f.Certificate, fmt.Errorf("read certificate with key %q: %w", f.Key, err))
	}
	pool := x509.NewCertPool()
	text, err := inputfile.Read(f.Authority, inputfile.Document)
	switch {
	case err != nil:
		wrong(f.Authority, fmt.Errorf("read authority: %w", err))
	case !pool.AppendCertsFromPEM(text):
		wrong(f.Authority, errors.New("read authority: no certificate in PEM"))
	}
	return pair, pool, found.Err()
}

// keyPair is tls.LoadX509KeyPair, of regular files.
func keyPair(certificate, key string) (tls.Certificate, error) {
	certified, err := inputfile.Read(certificate, inputfile.Document)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := inputfile.Read(key, inputfile.Document)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certified, secret)
}

func (f TLSFiles) server() (*tls.Config, error) {
	pair, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}

func (f TLSFiles) client() (*tls.Config, error) {
	pair, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS13}, nil
}
