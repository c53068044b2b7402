package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// chooser is the file that every changed package gets: it says which change is chosen, and notes which ones are reached.
const chooser = `package %s

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv("QUARTET_MUTANT"))

var mutantTrace = os.Getenv("QUARTET_MUTANT_TRACE")

var (
	mutantLock sync.Mutex
	mutantSeen [%d]atomic.Bool // by number
)

func mutantChosen(n int) bool {
	if mutantTrace != "" {
		mutantReached(n)
	}
	return n == mutantNumber
}

func mutantReached(n int) {
	if mutantSeen[n].Load() || mutantSeen[n].Swap(true) {
		return
	}
	mutantLock.Lock()
	defer mutantLock.Unlock()
	f, err := os.OpenFile(mutantTrace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strconv.Itoa(n) + "\n"); err != nil {
		panic(err)
	}
}
`

// score counts what became of the changes of a package.
type score struct {
	noticed, known int       // by a failing test; listed with a reason why no test can notice it
	survivors      []*mutant // that no test noticed
	timedOut       []*mutant // whose tests did not end in time: neither noticed nor survivors
}

// judged counts the changes of which it is known whether tests notice them.
func (s *score) judged() int { return s.noticed + s.known + len(s.survivors) }

// percent is the part of the judged changes that were noticed or are listed with a reason.
func (s *score) percent() float64 {
	if s.judged() == 0 {
		return 100
	}
	return 100 * float64(s.noticed+s.known) / float64(s.judged())
}

func (s *score) add(other *score) {
	s.noticed += other.noticed
	s.known += other.known
	s.survivors = append(s.survivors, other.survivors...)
	s.timedOut = append(s.timedOut, other.timedOut...)
}

func (s *score) String() string {
	return fmt.Sprintf("%d changes, %d noticed (%.1f %% of %d judged), %d known to survive, %d survive, %d timed out",
		s.judged()+len(s.timedOut), s.noticed, s.percent(), s.judged(), s.known, len(s.survivors), len(s.timedOut))
}

// choose draws the changes to try: of each package, of all packages together, or takes all.
func choose(packages []*pack, o options, known survivors) error {
	files, err := regexp.Compile(o.files)
	if err != nil {
		return err
	}
	type place struct {
		of *pack
		is *mutant
	}
	var places []place
	for _, p := range packages {
		mutants, _ := p.changes(files)
		number(mutants)
		if err := known.check(p.path, mutants, files); err != nil {
			return err
		}
		if o.total > 0 && !p.tested {
			continue
		}
		p.chosen = drawn(mutants, o.sample, o.seed)
		for _, m := range p.chosen {
			places = append(places, place{p, m})
		}
	}
	if o.total > 0 {
		for _, p := range packages {
			p.chosen = nil
		}
		for _, at := range drawn(places, o.total, o.seed) {
			at.of.chosen = append(at.of.chosen, at.is)
		}
	}
	return nil
}

// try makes the chosen changes of a package one after the other and runs its tests on each. When it is interrupted, the score is
// of those that were tried.
func (p *pack) try(ctx context.Context, o options, known survivors) (*score, error) {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if _, err := p.instrument(work, regexp.MustCompile(o.files)); err != nil {
		return nil, err
	}
	t := &trial{dir: p.dir, binary: filepath.Join(work, "tests")}
	if err := t.build(ctx, p.path, filepath.Join(work, "overlay.json"), o); err != nil {
		return nil, err
	}
	if t.args == nil { // no tests
		return &score{survivors: p.chosen}, nil
	}
	reached, err := t.baseline(ctx, filepath.Join(work, "trace"), o)
	if err != nil {
		return nil, err
	}
	s := &score{}
	var lock sync.Mutex
	var wait sync.WaitGroup
	next := make(chan *mutant)
	for range max(o.workers, 1) {
		wait.Go(func() {
			for m := range next {
				outcome := survived
				if reached[m.id] {
					outcome = t.outcome(ctx, m.id)
				}
				lock.Lock()
				switch {
				case ctx.Err() != nil: // interrupted: unknown
				case outcome == noticed:
					s.noticed++
				case outcome == timedOut:
					s.timedOut = append(s.timedOut, m)
				case known[p.path+"/"+m.key()]:
					s.known++
				default:
					s.survivors = append(s.survivors, m)
				}
				lock.Unlock()
			}
		})
	}
	for _, m := range p.chosen {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	wait.Wait()
	for _, list := range [][]*mutant{s.survivors, s.timedOut} {
		slices.SortFunc(list, func(a, b *mutant) int { return a.id - b.id })
	}
	return s, ctx.Err()
}

// changes lists the changes of those files of a package that match, and returns the text of each file that holds them, by its path.
func (p *pack) changes(files *regexp.Regexp) (mutants []*mutant, texts map[string]string) {
	texts = map[string]string{}
	for _, s := range p.files {
		if files.MatchString(filepath.Base(s.path)) && !bytes.Contains(s.text, []byte("// Code generated")) {
			texts[s.path] = p.mutate(s, &mutants)
		}
	}
	return mutants, texts
}

// instrument writes the changed files and the overlay that puts them in place of the real ones.
func (p *pack) instrument(work string, files *regexp.Regexp) ([]*mutant, error) {
	mutants, texts := p.changes(files)
	replace := map[string]string{}
	for i, s := range p.files {
		text, changed := texts[s.path]
		if !changed {
			continue
		}
		to := filepath.Join(work, strconv.Itoa(i)+".go")
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return nil, err
		}
		replace[s.path] = to
	}
	to := filepath.Join(work, "chooser.go")
	if err := os.WriteFile(to, fmt.Appendf(nil, chooser, p.files[0].ast.Name.Name, len(mutants)+1), 0o600); err != nil {
		return nil, err
	}
	replace[filepath.Join(p.dir, "mutant_chooser.go")] = to
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return mutants, os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o600)
}

// drawn is a sample of n without repetition, in order; all for n = 0.
func drawn[T any](list []T, n int, seed uint64) []T {
	if n == 0 || n >= len(list) {
		return list
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(list))[:n]
	slices.Sort(order)
	sample := make([]T, n)
	for i, at := range order {
		sample[i] = list[at]
	}
	return sample
}

// trial runs the tests of one package.
type trial struct {
	dir, binary string
	args        []string
	timeout     time.Duration
	quick, slow []string // names of tests
}

func (t *trial) build(ctx context.Context, path, overlay string, o options) error {
	c := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", t.binary, path)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests: %w\n%s", err, out)
	}
	if _, err := os.Stat(t.binary); err != nil {
		return nil
	}
	t.args = []string{"-test.failfast"}
	if o.short {
		t.args = append(t.args, "-test.short")
	}
	if o.only != "" {
		t.args = append(t.args, "-test.run", o.only)
	}
	if o.skip != "" {
		t.args = append(t.args, "-test.skip", o.skip)
	}
	help, _ := exec.CommandContext(ctx, t.binary, "-h").CombinedOutput() // exits with 2
	if bytes.Contains(help, []byte("rapid.nofailfile")) {
		t.args = append(t.args, "-rapid.nofailfile", "-rapid.shrinktime=1ms") // nobody reads what fails
	}
	return nil
}

// slowTest is how long a test may take to be among those that are run first.
const slowTest = 0.3 // seconds

var passed = regexp.MustCompile(`(?m)^--- PASS: (\S+) \(([0-9.]+)s\)`)

// baseline runs the tests with no change chosen: they pass, and tell what they reach and how long each takes.
func (t *trial) baseline(ctx context.Context, trace string, o options) (map[int]bool, error) {
	t.timeout = 10 * time.Minute
	if out, err := t.run(ctx, []string{"QUARTET_MUTANT_TRACE=" + trace}); err != nil {
		return nil, fmt.Errorf("the tests fail on the unchanged code: %w\n%s", err, tail(out))
	}
	started := time.Now()
	out, err := t.run(ctx, nil, "-test.v")
	if err != nil {
		return nil, fmt.Errorf("the tests fail on the unchanged code: %w\n%s", err, tail(out))
	}
	t.timeout = 5*time.Second + time.Duration(o.timeoutFactor*float64(time.Since(started)))
	for _, test := range passed.FindAllSubmatch(out, -1) {
		if seconds, _ := strconv.ParseFloat(string(test[2]), 64); seconds < slowTest {
			t.quick = append(t.quick, string(test[1]))
		} else {
			t.slow = append(t.slow, string(test[1]))
		}
	}
	text, err := os.ReadFile(trace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	reached := map[int]bool{}
	for line := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(line); err == nil {
			reached[n] = true
		}
	}
	return reached, nil
}

// An outcome is what the tests of a package say of a change.
type outcome int

const (
	survived outcome = iota // all tests pass
	noticed                 // a test fails
	timedOut                // the tests do not end in time, which a busy machine may cause too
)

// outcome runs the tests on a change, the quick ones first.
func (t *trial) outcome(ctx context.Context, id int) outcome {
	for _, tests := range [][]string{t.quick, t.slow} {
		if len(tests) == 0 {
			continue
		}
		only := "-test.run=^(" + strings.Join(tests, "|") + ")$"
		out, err := t.run(ctx, []string{"QUARTET_MUTANT=" + strconv.Itoa(id)}, only)
		switch {
		case err == nil:
		case errors.Is(err, errTimeout) || bytes.Contains(out, []byte("panic: test timed out after")):
			return timedOut
		default:
			return noticed
		}
	}
	return survived
}

// errTimeout says that the tests were ended because they had not ended by themselves.
var errTimeout = errors.New("the tests did not end in time")

// run runs the tests in a process group of their own, all of which ends with them.
func (t *trial) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, t.timeout+5*time.Second)
	defer cancel()
	c := isolated(limited, t.binary, slices.Concat(t.args, args, []string{"-test.timeout=" + t.timeout.String()})...)
	c.Dir, c.Env = t.dir, append(os.Environ(), env...)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	endGroup(c)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errTimeout
	}
	return out, err
}

func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }
