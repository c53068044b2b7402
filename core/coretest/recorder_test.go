package coretest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// recorder is a test that remembers its failures instead of failing.
type recorder struct {
	failures []string
}

type failNow struct{}

func (r *recorder) Helper()              {}
func (r *recorder) Name() string         { return "recorder" }
func (r *recorder) Log(...any)           {}
func (r *recorder) Logf(string, ...any)  {}
func (r *recorder) Skip(...any)          { panic(failNow{}) }
func (r *recorder) Skipf(string, ...any) { panic(failNow{}) }
func (r *recorder) SkipNow()             { panic(failNow{}) }
func (r *recorder) Error(args ...any)    { r.Errorf("%s", fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); r.FailNow() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }
func (r *recorder) Fail()                             { r.failures = append(r.failures, "failed") }
func (r *recorder) FailNow()                          { panic(failNow{}) }
func (r *recorder) Failed() bool                      { return len(r.failures) > 0 }

// record runs one check and returns what it complained about.
func record(t *testing.T, checks []check, name string) string {
	t.Helper()
	var r recorder
	for _, c := range checks {
		if c.name != name {
			continue
		}
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(failNow{}) {
					r.Errorf("panic: %v", p) // as go test does
				}
			}()
			c.run(&r)
		}()
		return strings.Join(r.failures, "\n")
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

var _ rapid.TB = (*recorder)(nil)

// factoryOf makes a factory of a fake policy.
func factoryOf[S any](create func() S) core.Factory[S] {
	return core.NewFactory(fakeInfo, core.None{}, func(core.None, core.Settings) (S, error) { return create(), nil })
}
