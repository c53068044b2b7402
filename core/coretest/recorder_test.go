package coretest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// TestMain keeps rapid from writing a file for, and from shrinking, the failures that these tests provoke.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// record runs one check in the same worlds each time and returns what it complained about.
func record(t *testing.T, checks []check, name string) string {
	t.Helper()
	restore, err := Effort{Seed: 1}.apply()
	if err != nil {
		t.Fatal(err)
	}
	defer restore()
	for _, c := range checks {
		if c.name == name {
			return c.record()
		}
	}
	t.Fatalf("no check named %q", name)
	return ""
}

// wantCaught fails unless the check complains with the words given, and, for random rounds, tells the seed.
func wantCaught(t *testing.T, checks []check, name, want string) {
	t.Helper()
	got := record(t, checks, name)
	if got == "" || !strings.Contains(got, want) {
		t.Errorf("check %q complained\n%s\nwant %q in it", name, got, want)
	}
	if name == "rounds" && !strings.Contains(got, "-rapid.seed=") {
		t.Errorf("the complaint does not tell the seed:\n%s", got)
	}
}

// factoryOf makes a factory of a fake policy.
func factoryOf[S any](create func() S) core.Factory[S] {
	return core.NewFactory(fakeInfo, core.None{}, func(core.None, core.Settings) (S, error) { return create(), nil })
}
