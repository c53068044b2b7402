package coretest

import (
	"cmp"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// Result is what one check of a suite came to.
type Result struct {
	Check string // name of the check
	Fault string // empty when the policy passed
	Seed  uint64 // that repeats the fault; 0 when it takes none
}

// Effort is how hard Check looks.
type Effort struct {
	Worlds int    // random worlds to try; 0 for 100
	Seed   uint64 // of the first one; 0 for another one each time
}

// Instances is the greatest number of instances of a policy that a suite uses at once: those it created last.
const Instances = 3

// Elsewhere says that the policy lives in another process, whose memory and goroutines are not ours to count.
func Elsewhere() Option { return func(o *options) { o.elsewhere = true } }

// Check runs the suite of a stage outside of `go test`. The error says that S is the slot of no stage.
func Check[S any](f core.Factory[S], e Effort, opts ...Option) ([]Result, error) {
	suite, err := suiteOf(f, opts)
	if err != nil {
		return nil, err
	}
	restore, err := e.apply()
	if err != nil {
		return nil, err
	}
	defer restore()
	results := make([]Result, len(suite))
	for i, c := range suite {
		results[i] = c.judge()
	}
	return results, nil
}

func suiteOf(f any, opts []Option) ([]check, error) {
	switch f := f.(type) {
	case core.Factory[core.Admitter]:
		return checks(admitterSlot(f.Type), f, opts), nil
	case core.Factory[core.Allocator]:
		return checks(allocatorSlot(f.Type), f, opts), nil
	case core.Factory[core.Placer]:
		return placerChecks(f, opts), nil
	case core.Factory[core.Elasticity]:
		return checks(elasticitySlot(f.Type), f, opts), nil
	case core.Factory[core.ClusterScaler]:
		return checks(scalerSlot(f.Type), f, opts), nil
	default:
		return nil, fmt.Errorf("%T is a factory of no stage", f)
	}
}

// apply sets what rapid reads from flags of the process, until it is restored.
func (e Effort) apply() (restore func(), err error) {
	if !flag.Parsed() { // not under `go test`
		testing.Init()
		if err := flag.CommandLine.Parse(nil); err != nil {
			return nil, err
		}
	}
	worlds := cmp.Or(e.Worlds, defaultWorlds)
	if testing.Short() {
		worlds *= shortDivisor // the effort is asked for as it is
	}
	// Nothing is shrunk: with a policy that hangs each attempt takes its time, and the seed says enough.
	settings := map[string]string{
		"rapid.nofailfile": "true", "rapid.shrinktime": "0s", "rapid.seed": strconv.FormatUint(e.Seed, 10),
		"rapid.checks": strconv.Itoa(worlds),
	}
	before := map[string]string{}
	restore = func() {
		for name, value := range before {
			_ = flag.Set(name, value) // it was valid before
		}
	}
	for name, value := range settings {
		before[name] = flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			restore()
			return nil, err
		}
	}
	return restore, nil
}

const (
	defaultWorlds = 100
	shortDivisor  = 5 // by which rapid divides the number of checks under -short
)

var (
	seedPattern = regexp.MustCompile(`-rapid\.seed=(\d+)`)
	preamble    = regexp.MustCompile(`^\[rapid\] (failed|panic) after \d+ tests: `)
	flaky       = regexp.MustCompile(`(?s)^\[rapid\] flaky test.*\nOriginal traceback \((.*?)\):\n    `)
)

// judge runs the check and words its complaint for readers who have no test to run again.
func (c check) judge() Result {
	complaint := c.record()
	r := Result{Check: c.name}
	if match := seedPattern.FindStringSubmatch(complaint); match != nil {
		r.Seed, _ = strconv.ParseUint(match[1], 10, 64)
	}
	if match := flaky.FindStringSubmatch(complaint); match != nil {
		complaint = "only once, and not again in the same world: " + match[1]
	}
	complaint, _, _ = strings.Cut(complaint, "\nTo reproduce, specify")
	r.Fault = strings.TrimSpace(preamble.ReplaceAllString(complaint, ""))
	return r
}

// record runs the check and returns what it complained about.
func (c check) record() string {
	var r recorder
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

// recorder is a test that remembers its failures instead of failing.
type recorder struct {
	failures []string
}

// failNow is what a recorder panics with to end a check.
type failNow struct{}

var _ rapid.TB = (*recorder)(nil)

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
