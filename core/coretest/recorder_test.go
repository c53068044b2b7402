package coretest

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// record runs one check in the same worlds each time and returns what it complained about.
func record(t *testing.T, checks []check, name string) Result {
	t.Helper()
	for _, c := range checks {
		if c.name == name {
			return c.judge(Effort{Seed: 1})
		}
	}
	t.Fatalf("no check named %q", name)
	return Result{}
}

// wantCaught fails unless the check complains with the words given, and, for random rounds, tells the seed.
func wantCaught(t *testing.T, checks []check, name, want string) {
	t.Helper()
	got := record(t, checks, name)
	if got.Fault == "" || !strings.Contains(got.Fault, want) {
		t.Errorf("check %q complained\n%s\nwant %q in it", name, got.Fault, want)
	}
	if name == "rounds" && got.Seed == 0 {
		t.Errorf("the complaint does not tell the seed:\n%s", got.Fault)
	}
}

// factoryOf makes a factory of a fake policy.
func factoryOf[S any](create func() S) core.Factory[S] {
	return core.NewFactory(fakeInfo, core.None{}, func(core.None, core.Settings) (S, error) { return create(), nil })
}
