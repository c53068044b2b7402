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

// chooser is the file that every changed package gets: it tells which change is chosen, and notes which ones are reached.
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

// score is what became of the changes of a package.
type score struct {
	tried, noticed, known int
	survivors             []*mutant
}

// percent is the part of the changes that were noticed or are known to make no difference.
func (s *score) percent() float64 {
	if s.tried == 0 {
		return 100
	}
	return 100 * float64(s.noticed+s.known) / float64(s.tried)
}

// try makes the changes of a package one after the other and runs its tests on each. Where it is cut short, the score is of those that it came to.
func (p *pack) try(ctx context.Context, o options, known survivors) (*score, error) {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	files, err := regexp.Compile(o.files)
	if err != nil {
		return nil, err
	}
	mutants, err := p.instrument(work, files)
	if err != nil {
		return nil, err
	}
	number(mutants)
	if err := known.check(p.path, mutants, files); err != nil {
		return nil, err
	}
	chosen := drawn(mutants, o.sample, o.seed)
	if o.list {
		for _, m := range chosen {
			fmt.Println(m)
		}
		return &score{}, nil
	}
	t := &trial{dir: p.dir, binary: filepath.Join(work, "tests")}
	if err := t.build(ctx, p.path, filepath.Join(work, "overlay.json"), o); err != nil {
		return nil, err
	}
	if t.args == nil { // no tests
		return &score{tried: len(chosen), survivors: chosen}, nil
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
				noticed := reached[m.id] && t.notices(ctx, m.id)
				lock.Lock()
				switch {
				case ctx.Err() != nil: // nobody knows
				case noticed:
					s.noticed++
				case known[p.path+"/"+m.key()]:
					s.known++
				default:
					s.survivors = append(s.survivors, m)
				}
				lock.Unlock()
			}
		})
	}
	for _, m := range chosen {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	wait.Wait()
	s.tried = s.noticed + s.known + len(s.survivors)
	slices.SortFunc(s.survivors, func(a, b *mutant) int { return a.id - b.id })
	return s, ctx.Err()
}

// instrument writes the changed files and the overlay that puts them in place of the real ones.
func (p *pack) instrument(work string, files *regexp.Regexp) ([]*mutant, error) {
	var mutants []*mutant
	replace := map[string]string{}
	for i, s := range p.files {
		if !files.MatchString(filepath.Base(s.path)) || bytes.Contains(s.text, []byte("// Code generated")) {
			continue
		}
		text := p.mutate(s, &mutants)
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

// drawn is a sample without repetition, in order.
func drawn(mutants []*mutant, n int, seed uint64) []*mutant {
	if n == 0 || n >= len(mutants) {
		return mutants
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(mutants))[:n]
	slices.Sort(order)
	var list []*mutant
	for _, i := range order {
		list = append(list, mutants[i])
	}
	return list
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

// notices reports whether the tests fail on a change, or do not end. The quick ones are asked first.
func (t *trial) notices(ctx context.Context, id int) bool {
	for _, tests := range [][]string{t.quick, t.slow} {
		if len(tests) == 0 {
			continue
		}
		only := "-test.run=^(" + strings.Join(tests, "|") + ")$"
		if _, err := t.run(ctx, []string{"QUARTET_MUTANT=" + strconv.Itoa(id)}, only); err != nil {
			return ctx.Err() == nil
		}
	}
	return false
}

func (t *trial) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout+5*time.Second)
	defer cancel()
	c := isolated(ctx, t.binary, slices.Concat(t.args, args, []string{"-test.timeout=" + t.timeout.String()})...)
	c.Dir, c.Env = t.dir, append(os.Environ(), env...)
	c.WaitDelay = time.Second
	return c.CombinedOutput()
}

func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }
