package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/sdk"
)

// make faults sets these.
var (
	allFaults      = flag.Bool("faults.all", false, "every fault in every stage, simulated and run, with every on_failure")
	faultSequences = flag.Int("faults.sequences", 6, "random sequences of faults")
	faultSeed      = flag.Uint64("faults.seed", 1, "seed of the first sequence")
)

const serveFaultyArgument = "serve-faulty-plugin"

// serveFaultyIfAsked makes the test binary the plugin that goes wrong.
func serveFaultyIfAsked() {
	if len(os.Args) == 2 && os.Args[1] == serveFaultyArgument {
		sdk.Main(faulty.Factories()...)
	}
}

// slots tells where a stage is in a config, and a built-in policy for it.
var slots = map[string]struct{ path, builtIn string }{
	"admission":  {"pipeline.admission", "accept_all"},
	"allocation": {"pipeline.allocation", "fifo"},
	"placement":  {"pipeline.placement", "first_fit"},
	"elasticity": {"pipeline.elasticity.job", "fixed"},
	"scaler":     {"pipeline.elasticity.cluster", ""},
}

// faultyStage is a stage that goes wrong.
type faultyStage struct {
	stage, faults, onFailure string
	once                     bool // each fault goes wrong once only
	restarts                 int
}

func (f faultyStage) marker(dir string) string {
	if !f.once {
		return ""
	}
	return filepath.Join(dir, "marker-"+f.stage)
}

// done lists the files that say that the faults have gone wrong already.
func (f faultyStage) done(dir string) (files []string) {
	for fault := range strings.SplitSeq(f.faults, ",") {
		name, round, _ := strings.Cut(fault, "@")
		files = append(files, f.marker(dir)+"-"+name+"-"+round)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

func (f faultyStage) set(dir string) string {
	slot, marker := slots[f.stage], f.marker(dir)
	timeout := "1m"
	if strings.Contains(f.faults, "hang") || strings.Contains(f.faults, "stop") {
		timeout = "2s"
	}
	fallback := ""
	if f.onFailure == string(host.Fallback) {
		fallback = ", fallback: {type: " + slot.builtIn + "}"
	}
	value := fmt.Sprintf("{type: faulty, config: {fault: %q, marker: %q}, plugin: {on_failure: %s, max_restarts: %d, backoff: 1ms, call_timeout: %s%s}}",
		f.faults, marker, f.onFailure, f.restarts, timeout, fallback)
	if f.stage == "admission" {
		value = "[" + value + "]"
	}
	return slot.path + "=" + value
}

// faultyRun simulates or runs a few jobs with stages that go wrong, and returns how it ended. Nothing may be left of it but
// its results, also where the folder holds those of an earlier run, in which nothing went wrong.
func faultyRun(t *testing.T, mode string, earlier bool, stages ...faultyStage) (code int, said string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "q") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	temporary, plugins := filepath.Join(dir, "tmp"), filepath.Join(dir, "plugins")
	for _, folder := range []string{temporary, plugins} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	installFaulty(t, plugins)
	args := []string{mode, "--plugin-dir", plugins, "--set", "name=r"}
	if mode == "run" {
		jobs := filepath.Join(dir, "jobs.yaml")
		text := `{version: 1, jobs: [{name: a, command: ["true"]}, {name: b, command: ["true"]}, {name: c, command: [sleep, "0.3"]}]}`
		if err := os.WriteFile(jobs, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--fresh", "--jobs", jobs, "--set", "cluster.nodes=[{name: here, accelerator: gpu, devices: 2}]")
	} else {
		args = append(args, "--set", "cluster.nodes=[{name: n, count: 2, accelerator: t4, devices: 2}]",
			"--set", "workload={type: generated, config: {jobs: 12, span: 10m, replicas: one, durations: pollux}}", "--set", "round.interval=60s")
	}
	var done []string
	for _, s := range stages {
		args = append(args, "--set", s.set(dir))
		done = append(done, s.done(dir)...)
	}
	results := filepath.Join(dir, "runs/r")
	if earlier {
		for _, file := range done {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, said = start(t, dir, temporary, args); code != cli.ExitOK {
			t.Fatalf("the earlier run: exit code %d; it said:\n%.4000s", code, said)
		}
		for _, file := range done {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	code, said = start(t, dir, temporary, args)
	if left := faulty.Sockets(temporary); len(left) > 0 {
		t.Errorf("folders of sockets left: %v", left)
	}
	var left []string
	for range 500 { // jobs of a run that failed go on, and end by themselves
		if left = faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	begun := !strings.Contains(said, "nothing was written")
	checkResults(t, results, code != cli.ExitOK && begun)
	if code == cli.ExitOK {
		checkCompleted(t, filepath.Join(results, "jobs.csv"))
	}
	if t.Failed() {
		t.Logf("it said:\n%.4000s", said)
	}
	return code, said
}

// start runs quartet in a folder until it ends.
func start(t *testing.T, dir, temporary string, args []string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "quartet", args...)
	var stderr bytes.Buffer
	c.Dir, c.Stderr, c.Env = dir, &stderr, append(os.Environ(), "TMPDIR="+temporary)
	_ = c.Run() // the exit code is returned
	code, said = c.ProcessState.ExitCode(), stderr.String()
	if ctx.Err() != nil {
		t.Fatalf("it does not end; said:\n%.2000s", said)
	}
	checkSaid(t, said)
	return code, said
}

// checkResults holds that the files in a folder are those of one run that has ended: a manifest that says whether it failed, and
// every output as the manifest records it.
func checkResults(t *testing.T, folder string, wantFailed bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, quartet.ManifestFile))
	if err != nil {
		t.Errorf("no results: %v", err)
		return
	}
	var m quartet.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if failed := strings.Contains(m.Failed, `plugin "faulty"`); failed != wantFailed {
		t.Errorf("the manifest says that it failed of %q, want it to say so: %v", m.Failed, wantFailed)
	}
	var recorded []string
	for _, o := range m.Outputs {
		recorded = append(recorded, o.File)
		data, err := os.ReadFile(filepath.Join(folder, o.File))
		if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != o.SHA256 {
			t.Errorf("%s is not the file that the manifest records: %v", o.File, err)
		}
	}
	for _, name := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
		if !slices.Contains(recorded, name) {
			t.Errorf("the manifest records %v, without %s", recorded, name)
		}
	}
	for _, pattern := range []string{"*.csv", "*.jsonl", "*.tmp*"} {
		found, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, path := range found {
			if !slices.Contains(recorded, filepath.Base(path)) {
				t.Errorf("%s is not of this run", path)
			}
		}
	}
}

// installFaulty records the test binary in a folder as the plugin that goes wrong.
func installFaulty(t *testing.T, folder string) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(folder, "quartet-plugin-faulty")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+own+" "+serveFaultyArgument+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum, err := host.HashFile(script)
	if err != nil {
		t.Fatal(err)
	}
	e := host.Entry{Name: "faulty", Version: "v1.0.0", Path: filepath.Base(script), Protocol: 1, SHA256: sum}
	for _, stage := range slices.Sorted(maps.Keys(slots)) {
		e.Components = append(e.Components, host.LockedComponent{Stage: stage, Type: "faulty"})
	}
	if err := (&host.Lock{Version: 1, Plugins: []host.Entry{e}}).Write(folder); err != nil {
		t.Fatal(err)
	}
}

// checkSaid holds what the user sees to its bounds.
func checkSaid(t *testing.T, said string) {
	t.Helper()
	if len(said) > 1<<20 || !utf8.ValidString(said) || strings.ContainsAny(said, "\x00\x1b\x07") {
		t.Errorf("%d bytes reached the terminal, or control characters: %.2000q", len(said), said)
	}
	for _, word := range []string{"goroutine ", "runtime error"} {
		for line := range strings.Lines(said) {
			if strings.Contains(line, word) && !strings.Contains(line, "plugin=faulty") {
				t.Errorf("the scheduler itself panicked: %.4000s", said)
			}
		}
	}
}

func checkCompleted(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d rows in %s, error %v", len(rows), path, err)
	}
	column := slices.Index(rows[0], "outcome")
	for _, row := range rows[1:] {
		if row[column] != "completed" {
			t.Errorf("job %s: %s", row[1], row[column])
		}
	}
}

// faultCase is one row of the list: a fault, and whether it is one.
type faultCase struct {
	stage, fault, mode, onFailure string
	harmless                      bool
}

func (f faultCase) String() string {
	return strings.Join([]string{f.stage, f.fault, f.mode, f.onFailure}, "/")
}

// faultCases is every combination; or each fault once in each mode where it differs by the stage and once among the stages
// where it does not, every other one simulated only, and the values of on_failure in turn.
func faultCases(all bool) (cases []faultCase) {
	stages := slices.Sorted(maps.Keys(slots))
	for at, stage := range stages {
		answers := []string{string(host.Fail), string(host.Restart), string(host.Fallback)}
		if slots[stage].builtIn == "" {
			answers = answers[:2]
		}
		for i, fault := range faultsOf(stage) {
			general := i - len(faulty.Answers[stage])
			if !all && general >= 0 && general%len(stages) != at {
				continue
			}
			for m, mode := range []string{"simulate", "run"} {
				if !all && m == 1 && i%2 == 1 {
					continue
				}
				for o, onFailure := range answers {
					if all || o == (i/2+m)%len(answers) {
						cases = append(cases, faultCase{stage, fault, mode, onFailure, slices.Contains(faulty.Harmless, fault)})
					}
				}
			}
		}
	}
	return cases
}

// faultsOf lists the faults of a stage, its own first.
func faultsOf(stage string) []string {
	return slices.Concat(faulty.Answers[stage], faulty.Anywhere, faulty.Harmless[1:])
}

// The cases that are tested by default hold every fault of every stage, each mode and each answer to a failure.
func TestFaultCasesHoldEveryFault(t *testing.T) {
	for _, all := range []bool{false, true} {
		cases := faultCases(all)
		for stage := range slots {
			has := func(what string, matches func(faultCase) bool) {
				if !slices.ContainsFunc(cases, func(c faultCase) bool { return c.stage == stage && matches(c) }) {
					t.Errorf("all=%v: no case of %s with %s", all, stage, what)
				}
			}
			for _, fault := range faulty.Answers[stage] {
				has(fault, func(c faultCase) bool { return c.fault == fault })
			}
			for _, mode := range []string{"simulate", "run"} {
				has(mode, func(c faultCase) bool { return c.mode == mode })
			}
			for _, answer := range []host.OnFailure{host.Fail, host.Restart, host.Fallback} {
				if answer != host.Fallback || slots[stage].builtIn != "" {
					has(string(answer), func(c faultCase) bool { return c.onFailure == string(answer) })
				}
			}
		}
		for _, fault := range slices.Concat(faulty.Anywhere, faulty.Harmless[1:]) {
			if !slices.ContainsFunc(cases, func(c faultCase) bool { return c.fault == fault }) {
				t.Errorf("all=%v: no case with %s", all, fault)
			}
		}
		if !all && len(cases) > 90 {
			t.Errorf("%d cases by default, want at most 90", len(cases))
		}
	}
}

// TestPluginFaults goes through the list of faults, by stage, simulated and run, with each on_failure: the outcome is the
// one that was chosen, nothing is left, and the scheduler lives.
func TestPluginFaults(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend is for Linux; run the tests there")
	}
	for i, tc := range faultCases(*allFaults) {
		if testing.Short() && i%5 > 0 {
			continue
		}
		t.Run(tc.String(), func(t *testing.T) {
			at := map[string]int{"simulate": faulty.Round, "run": 1}[tc.mode]
			faults := fmt.Sprintf("%s@%d", tc.fault, at)
			fails := tc.onFailure == string(host.Fail) && !tc.harmless
			if tc.stage == "elasticity" && tc.mode == "run" {
				faults += fmt.Sprintf(",%s@0", tc.fault) // one for the component that says whether the jobs fit
			}
			code, said := faultyRun(t, tc.mode, fails, faultyStage{
				stage: tc.stage, faults: faults, onFailure: tc.onFailure, restarts: 2,
				once: tc.onFailure != string(host.Fallback) || tc.harmless,
			})
			want, words := cli.ExitOK, ""
			switch {
			case tc.harmless:
				words = map[string]string{"print": `msg="a word on stdout" plugin=faulty`, "odd_log": `level=ERROR msg="an odd entry" plugin=faulty`, "flood": "left out"}[tc.fault]
			case fails:
				want, words = cli.ExitFailed, `plugin "faulty"`
			case tc.onFailure == string(host.Restart):
				words = "restarting a plugin"
			default:
				words = "the fallback takes over"
			}
			if code != want || !strings.Contains(said, words) {
				t.Errorf("exit code %d, want %d; want %q in what it said:\n%.4000s", code, want, words, said)
			}
		})
	}
}

// TestPluginFaultSequences lets several stages go wrong several times at random rounds.
func TestPluginFaultSequences(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend is for Linux; run the tests there")
	}
	for i := range *faultSequences {
		seed := *faultSeed + uint64(i)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := core.NewRand(seed, "faults")
			mode := "simulate"
			if rng.IntN(5) == 0 {
				mode = "run"
			}
			stages, mayFail := drawFaults(rng, mode)
			code, said := faultyRun(t, mode, mayFail, stages...)
			failed := code == cli.ExitFailed && strings.Contains(said, `plugin "faulty"`)
			if code != cli.ExitOK && (!failed || !mayFail) {
				t.Errorf("%s with %+v: exit code %d, may fail: %v; said:\n%.4000s", mode, stages, code, mayFail, said)
			}
		})
	}
}

// drawFaults draws stages that go wrong, and tells whether the run may fail of it.
func drawFaults(rng *rand.Rand, mode string) (stages []faultyStage, mayFail bool) {
	names := slices.Sorted(maps.Keys(slots))
	rng.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	for _, stage := range names[:1+rng.IntN(3)] {
		all := faultsOf(stage)
		var faults []string
		real, most := 0, map[string]int{"simulate": 12, "run": 3}[mode]
		for range 1 + rng.IntN(3) {
			fault := all[rng.IntN(len(all))]
			if !slices.Contains(faulty.Harmless, fault) {
				real++
			}
			faults = append(faults, fmt.Sprintf("%s@%d", fault, 1+rng.IntN(most)))
		}
		answers := []string{string(host.Fail), string(host.Restart), string(host.Fallback)}
		if slots[stage].builtIn == "" {
			answers = answers[:2]
		}
		s := faultyStage{stage: stage, faults: strings.Join(faults, ","), onFailure: answers[rng.IntN(len(answers))], restarts: rng.IntN(4), once: true}
		mayFail = mayFail || real > 0 && (s.onFailure == string(host.Fail) || s.onFailure == string(host.Restart) && s.restarts < real)
		stages = append(stages, s)
	}
	return stages, mayFail
}
