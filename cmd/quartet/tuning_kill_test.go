package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

var (
	tuningKills = flag.Int("tuning.kills", 3, "how often TestTuningIsKilled kills a scheduler, each way")
	tuningSeed  = flag.Uint64("tuning.seed", 1, "seed of the moments")
)

const (
	tuningTrials = 10
	tuningSteps  = 6
	stopsAfter   = 3 // steps that a trial reports before the search below stops it
)

// trial is a program to run as a trial: trial LEDGER X NUMBER takes some steps, after each of which it has a checkpoint and reports a loss. With a number that is stopped
// it waits for that. The ledger outlives all.
func trial() {
	e, err := agent.ReadEnvironment(os.LookupEnv)
	if err != nil {
		os.Exit(9)
	}
	ledger := os.Args[1]
	x, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil || writeLine(ledger, e.Job+","+os.Args[2]) != nil {
		os.Exit(9)
	}
	c, kept := agent.Dial(e), filepath.Join(e.Checkpoint, "step")
	text, _ := os.ReadFile(kept) // none yet
	step, _ := strconv.Atoi(string(text))
	for step < tuningSteps {
		time.Sleep(20 * time.Millisecond)
		step++
		progress := float64(step)
		if err := errors.Join(
			os.WriteFile(kept, []byte(strconv.Itoa(step)), 0o600), c.Metric("loss", progress, loss(x, step)), c.Checkpointed(progress),
			c.Report(agent.Report{Replicas: e.Replicas, Nodes: e.Nodes, Progress: progress}),
		); err != nil {
			os.Exit(9)
		}
		told := c.Poll()
		for step == stopsAfter && isStopped(os.Args[3]) && told.Stop == nil {
			<-c.Received()
			told = c.Poll()
		}
		if told.Stop != nil {
			c.Close()
			os.Exit(75)
		}
	}
	if c.Done() != nil {
		os.Exit(9)
	}
	c.Close()
}

// isStopped tells whether a trial is stopped by the search: every third one. Where nobody stops trials they have no number.
func isStopped(number string) bool {
	n, err := strconv.Atoi(number)
	return err == nil && n%3 == 2
}

func loss(x float64, step int) float64 { return x*x + 1/float64(step) }

func writeLine(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

// seeker is a search that proposes other trials each time: what was proposed is nowhere but in the record. It stops every third one, and complains in a file of what it is
// told twice, or again.
func seeker() {
	complain := func(format string, args ...any) { _ = writeLine(os.Args[1], fmt.Sprintf(format, args...)) }
	type result struct {
		Trial int
		Kind  string
		Step  *float64
	}
	type proposal struct {
		ID     int                `json:"id"`
		Params map[string]float64 `json:"params"`
	}
	type history struct {
		Trials []proposal
		Tell   []result
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	next, told := 0, map[string]bool{}
	hear := func(list []result) (stop []int) {
		for _, r := range list {
			step := -1.0
			if r.Step != nil {
				step = *r.Step
			}
			key := fmt.Sprintf("trial %d: %s at step %v", r.Trial, r.Kind, step)
			if r.Kind != "report" {
				key = fmt.Sprintf("trial %d: its end", r.Trial)
			}
			if told[key] {
				complain("told again: %s", key)
			}
			told[key] = true
			if r.Trial >= next {
				complain("%s, which was not proposed", key)
			}
			if r.Kind == "report" && step == stopsAfter && isStopped(strconv.Itoa(r.Trial)) {
				stop = append(stop, r.Trial)
			}
		}
		return stop
	}
	for lines.Scan() {
		var line struct {
			Hello *struct{ Resume history }
			Ask   int
			Tell  []result
		}
		var answer struct {
			Protocol int        `json:"protocol,omitempty"`
			Trials   []proposal `json:"trials,omitempty"`
			Stop     []int      `json:"stop,omitempty"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			complain("%v", err)
			return
		}
		if line.Hello != nil {
			answer.Protocol, next = 1, len(line.Hello.Resume.Trials)
			hear(line.Hello.Resume.Tell)
		}
		for range line.Ask {
			answer.Trials = append(answer.Trials, proposal{next, map[string]float64{"x": rand.Float64()}})
			next++
		}
		answer.Stop = hear(line.Tell)
		text, err := json.Marshal(answer)
		if err != nil {
			complain("%v", err)
		}
		fmt.Println(string(text))
	}
}

// tunes is a config of a search, whose trials write into the ledger and know their number, or another.
func tunes(search, ledger, number string) string {
	return fmt.Sprintf(`
version: 1
name: tuned
cluster: {nodes: [{name: here, accelerator: gpu, devices: 3}]}
workload:
  type: tuning
  config:
    experiment: t
    trials: %d
    parallel: 4
    metric: loss
    goal: minimize
    space: [{name: x, uniform: [0, 1]}]
    search: %s
    job: {command: [trial, %q, "${x}", %q], checkpoint: true}
round: {interval: 0s, on_events: true}
pipeline: {allocation: {type: fifo}, placement: {type: first_fit}, elasticity: {job: {type: fixed}}}
backend: {type: local}
output: {write: [jobs, reports]}
`, tuningTrials, search, ledger, number)
}

// tuned is what became of a search.
type tuned struct {
	killed         int               // times that its scheduler was, before it was done
	params, states map[string]string // by job
	ledger         []string          // a line for each time that a trial began
	reports        map[string][]int  // the steps that each trial reported, by job
	record         []string          // the record of the search
	complaints     string            // of the search
}

// tune runs a search, and kills its scheduler some times on the way.
func tune(t *testing.T, search string, stops bool, kills int, rng *rand.Rand) (came tuned) {
	t.Helper()
	number := "none"
	if stops {
		number = "${trial}"
	}
	dir := t.TempDir()
	ledger, complaints := filepath.Join(dir, "ledger"), filepath.Join(dir, "complaints")
	config := tunes(strings.ReplaceAll(search, "COMPLAINTS", complaints), ledger, number)
	if err := os.WriteFile(filepath.Join(dir, "tuned.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for killed := &came.killed; ; {
		var said bytes.Buffer
		c := exec.Command("quartet", "run", "-q", "-f", "tuned.yaml", "--metrics", "off") //nolint:noctx // it is killed below
		c.Dir, c.Stdout, c.Stderr = dir, io.Discard, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		limit := 2 * time.Minute
		if *killed < kills { // less than all of it takes, or there is nothing left to kill
			limit = time.Duration(rng.IntN(500_000)) * time.Microsecond
		}
		reaper := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
		err := c.Wait()
		if reaper.Stop() {
			if err != nil {
				t.Fatalf("after %d kills: %v\n%s", *killed, err, said.String())
			}
			break
		}
		if *killed++; *killed > kills {
			t.Fatalf("after %d kills: it does not end\n%s", kills, said.String())
		}
	}
	for _, p := range keeper.Find(dir) {
		t.Errorf("process %d of %s is left; a keeper: %v", p.PID, p.Run, p.Keeper)
	}
	out := filepath.Join(dir, "runs", "tuned")
	came.params, came.states, came.reports, came.ledger = map[string]string{}, map[string]string{}, map[string][]int{}, textLines(t, ledger)
	for _, row := range rows(t, filepath.Join(out, "trials.csv")) {
		came.params[row["job"]], came.states[row["job"]] = row["param.x"], row["state"]
	}
	names := map[string]string{}
	for _, row := range rows(t, filepath.Join(out, "jobs.csv")) {
		names[row["job"]] = row["name"]
	}
	for _, row := range rows(t, filepath.Join(out, "reports.csv")) {
		step, err := strconv.Atoi(row["step"])
		if err != nil {
			t.Fatal(err)
		}
		job := names[row["job"]]
		x, _ := strconv.ParseFloat(came.params[job], 64)
		if value, _ := strconv.ParseFloat(row["value"], 64); value != loss(x, step) {
			t.Errorf("%s reports %v at step %d, want %v", job, value, step, loss(x, step))
		}
		came.reports[job] = append(came.reports[job], step)
	}
	records, err := filepath.Glob(filepath.Join(out, "live", "search-*.jsonl"))
	if err != nil || len(records) != 1 {
		t.Fatalf("records of the search: %q, %v", records, err)
	}
	came.record = textLines(t, records[0])
	text, err := os.ReadFile(complaints)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	came.complaints = string(text)
	return came
}

func textLines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// rows are those of a table, by column.
func rows(t *testing.T, path string) (list []map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, column := range all[0] {
			row[column] = line[i]
		}
		list = append(list, row)
	}
	return list
}

// check holds what became of a search to what must hold, however often its scheduler was killed.
func (came *tuned) check(t *testing.T, stops bool) {
	t.Helper()
	if len(came.params) != tuningTrials {
		t.Errorf("%d trials, want %d", len(came.params), tuningTrials)
	}
	var begun []string
	for job, x := range came.params {
		begun = append(begun, job+","+x)
	}
	slices.Sort(begun)
	slices.Sort(came.ledger)
	if diff := cmp.Diff(begun, came.ledger); diff != "" {
		t.Errorf("each trial begins once, with what was proposed; -proposed +begun:\n%s", diff)
	}
	for job, state := range came.states {
		want, steps := "finished", []int{1, 2, 3, 4, 5, 6}
		if number, _ := strconv.Atoi(job[len("t-"):]); stops && isStopped(strconv.Itoa(number-1)) {
			want, steps = "stopped", steps[:stopsAfter]
		}
		if got := came.reports[job]; state != want || !slices.Equal(got, steps) {
			t.Errorf("%s %s and reported %v; want %s, %v", job, state, got, want, steps)
		}
	}
	// The search was told each report and each end once, and proposed what was run.
	told, proposed := map[string]int{}, map[string]string{}
	for _, line := range came.record[1:] {
		var x struct {
			Trials []struct {
				ID     int
				Params map[string]json.Number
			}
			Tell []struct {
				Trial int
				Kind  string
				Step  *float64
			}
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		for _, p := range x.Trials {
			proposed[fmt.Sprintf("t-%04d", p.ID+1)] = string(p.Params["x"])
		}
		for _, r := range x.Tell {
			key := fmt.Sprintf("t-%04d ends", r.Trial+1)
			if r.Kind == "report" {
				key = fmt.Sprintf("t-%04d reports %v", r.Trial+1, *r.Step)
			}
			told[key]++
		}
	}
	want := map[string]int{}
	for job, steps := range came.reports {
		want[job+" ends"] = 1
		for _, step := range steps {
			want[fmt.Sprintf("%s reports %d", job, step)] = 1
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what the search is told, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(came.params, proposed); diff != "" {
		t.Errorf("-run +proposed:\n%s", diff)
	}
	if came.complaints != "" {
		t.Errorf("the search complains: %s", came.complaints)
	}
}

// TestTuningIsKilled kills the schedulers of searches at random moments. Whatever the moment, each trial runs once, each report is told once, and a search that answers alike
// comes to the same trials as without a kill; one that does not is held to its record.
func TestTuningIsKilled(t *testing.T) {
	t.Logf("seed %d, %d kills each", *tuningSeed, *tuningKills)
	cases := map[string]struct {
		search string
		stops  bool
	}{
		"random":   {"{type: random}", false},
		"external": {`{type: external, config: {command: [seeker, "COMPLAINTS"]}}`, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(*tuningSeed, uint64(len(name))))
			undisturbed := tune(t, tc.search, tc.stops, 0, rng)
			undisturbed.check(t, tc.stops)
			for left := *tuningKills; left > 0; {
				killed := tune(t, tc.search, tc.stops, min(left, 4), rng)
				left -= killed.killed
				killed.check(t, tc.stops)
				if !tc.stops && !maps.Equal(undisturbed.params, killed.params) {
					t.Errorf("-undisturbed +killed:\n%s", cmp.Diff(undisturbed.params, killed.params))
				}
			}
		})
	}
}
