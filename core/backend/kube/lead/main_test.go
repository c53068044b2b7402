package lead

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
)

// childVariable names the kubeconfig of a process that leads for a test, and can be stopped and killed.
const childVariable = "QUARTET_TEST_LEADER"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		if err := child(path); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func connected(path string) (*kubeclient.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubeclient.New(config)
}

func live(client *kubeclient.Client, name string) Options {
	return Options{
		Client: client, Namespace: "default", Name: leaseName, State: stateName, Identity: name,
		Lease: DefaultLease, Renew: DefaultRenew, Retry: DefaultRetry, Clock: realClock{}, ReleaseOnCancel: true,
	}
}

// child leads, and counts rounds as fast as it may. It says when it leads, and when that turns from possible to impossible.
func child(path string) error {
	client, err := connected(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	term, err := Run(ctx, live(client, "child"))
	if err != nil {
		return err
	}
	s, err := Open(ctx, client, term, "default", stateName, now())
	if err != nil {
		return err
	}
	fmt.Println("leads", term.Epoch)
	for could := true; ; time.Sleep(5 * time.Millisecond) {
		err := s.Write(ctx, func(k *Kept) { k.Snapshot = number(numberOf(k.Snapshot) + 1) })
		switch {
		case err == nil && !could:
			fmt.Println("writes again")
			could = true
		case errors.Is(err, ErrFenced):
			fmt.Println("fenced:", err)
			return nil
		case err != nil && could:
			fmt.Println("cannot:", err)
			could = false
		}
	}
}
