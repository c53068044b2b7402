//go:build linux

package kubecluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// The files of the folder certs, and beside it.
const (
	privateKey        = "service-accounts.key"
	publicKey         = "service-accounts.pub"
	tokens            = "tokens.csv"
	serverCertificate = "apiserver.crt" // made by the API server
	schedulerConfig   = "scheduler.yaml"
)

// writeSecrets writes the keys of service accounts, the token of the administrator and a kubeconfig with it.
func (c *Cluster) writeSecrets() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	c.Token = newToken()
	certs := filepath.Join(c.Dir, "certs")
	for path, content := range map[string][]byte{
		filepath.Join(certs, privateKey): pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		filepath.Join(certs, publicKey):  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		filepath.Join(certs, tokens):     []byte(c.Token + ",admin,admin,system:masters\n"),
		c.Kubeconfig: fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: quartet, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: admin, user: {token: %s}}]
contexts: [{name: quartet, context: {cluster: quartet, user: admin}}]
current-context: quartet
`, c.Server, filepath.Join(certs, serverCertificate), c.Token),
		// The limits of a client are lifted, so that a comparison is one of schedulers.
		filepath.Join(c.Dir, schedulerConfig): fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 5000, burst: 10000}
`, c.Kubeconfig),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
