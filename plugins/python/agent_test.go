package python_test

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
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/agent"
)

// A training in Python and a scheduler in Go understand each other.
func TestAgent(t *testing.T) {
	t.Run("unix", func(t *testing.T) { agentOverUnix(t) })
	t.Run("tls", func(t *testing.T) { agentOverTLS(t) })
}

func agentOverUnix(t *testing.T) {
	folder, err := os.MkdirTemp("", "agent") // the folder of a test may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "agent.sock")
	s, err := agent.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	train(t, s, agent.Environment{Job: "train", Replicas: 1, Nodes: 1, Socket: path}, "train", "")
}

func agentOverTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificate, ca := newCertificate(t)
	s := agent.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}}),
		func(_ context.Context, h agent.Hello) (agent.Identity, error) {
			if h.Token != "its-token" {
				return agent.Identity{}, fmt.Errorf("unknown token")
			}
			return agent.Identity{Job: "its-uid", Member: "0"}, nil
		})
	defer s.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("its-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := agent.Environment{Job: "train", Replicas: 1, Nodes: 1, Socket: "tls://" + l.Addr().String(), CA: ca, Token: token}
	train(t, s, e, "its-uid", "0")
}

// newCertificate is one for this machine, and how it is known.
func newCertificate(t *testing.T) (tls.Certificate, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// train tells a training to tune, that there are others and to stop.
func train(t *testing.T, s *agent.Server, e agent.Environment, job, member string) {
	s.Expect(job)
	tuning := agent.Tuning{BatchPerDevice: 48, AccumulationSteps: 1, LearningRateFactor: 1.5, BatchByReplica: []int{48}}
	world := agent.World{Generation: 2, Replicas: 3, Nodes: 2, Address: "train-0"}
	if _, err := s.Send(job, agent.ToJob{Tuning: &tuning, World: &world}); err != nil {
		t.Fatal(err)
	}

	training := exec.Command(interpreter(t), filepath.Join("tests", "training.py"))
	training.Env = append(os.Environ(), e.Variables()...)
	training.Stderr = os.Stderr
	if err := training.Start(); err != nil {
		t.Fatal(err)
	}
	const patience = 2 * time.Minute // on a busy machine too
	limit := time.After(patience)
	checkpointed := 0.0
	for gone := false; !gone; {
		var e agent.Event
		select {
		case e = <-s.Events():
		case <-limit:
			_ = training.Process.Kill()
			_ = training.Wait() // it was killed
			t.Fatalf("the training is not gone after %v; checkpointed at %v", patience, checkpointed)
		}
		if e.Err != nil || e.Job != job || e.Member != member {
			t.Errorf("%v of %q, %q", e.Err, e.Job, e.Member)
		}
		if r := e.Report; r != nil {
			want := agent.Report{
				Replicas: 3, Nodes: 2, BatchPerDevice: 48, StepSeconds: 0.001, GradientSquare: 2, GradientVariance: 3, Progress: r.Progress,
			}
			if d := cmp.Diff(want, *r); d != "" || r.Progress < 1 {
				t.Errorf("report (-want +got):\n%s", d)
			}
			if _, err := s.Send(job, agent.ToJob{Stop: &agent.Stop{GraceSeconds: 5}}); err != nil {
				t.Error(err)
			}
		}
		if e.Checkpointed != nil {
			checkpointed = e.Checkpointed.Progress
		}
		gone = e.Gone
	}
	if checkpointed < 1 {
		t.Errorf("checkpointed at %v", checkpointed)
	}
	var exit *exec.ExitError
	if err := training.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 75 {
		t.Errorf("the training ended with %v, want exit code 75", err)
	}
}
