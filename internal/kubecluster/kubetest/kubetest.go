//go:build linux

package kubetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet/internal/kubecluster"
)

const variable = "QUARTET_CONTROLPLANE"

// Real reports whether the programs of a control plane are named, so that tests need no stand-in.
func Real() bool { return os.Getenv(variable) != "" }

// Programs is the folder of the programs of a control plane. A test that is to do without is skipped. One that was promised them
// fails when they are not there.
func Programs(t testing.TB) string {
	t.Helper()
	bin := os.Getenv(variable)
	if bin == "" {
		t.Skip(variable + " is not set: make kube-test builds the programs and sets it")
	}
	if missing := kubecluster.Missing(bin); len(missing) > 0 {
		t.Fatalf("%s is %s, which lacks %v: go run ./tools/kube build builds them", variable, bin, missing)
	}
	return bin
}

// Start starts a control plane that ends with the test. Its programs and its folder are not for the options to say.
func Start(t testing.TB, o kubecluster.Options) *kubecluster.Cluster {
	t.Helper()
	o.Bin, o.Dir, o.Tied = Programs(t), filepath.Join(t.TempDir(), "kube"), true
	c, err := kubecluster.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}
