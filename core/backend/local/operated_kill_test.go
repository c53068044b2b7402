package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// order is a line that a test gives a scheduler in a process of its own; it is answered by an answer.
type order struct {
	Submit, Cancel, Drain, Undrain string
}

type answer struct {
	Error    string
	Outcomes map[string]string // of all jobs, by name; empty while they have not ended
	Health   map[string]string // of all nodes
}

// outcomes notes how jobs end. It is written and read between rounds.
type outcomes map[core.JobID]string

func (o outcomes) ObserveRound(r *core.Report) error {
	for _, e := range r.Events {
		switch e.Kind {
		case core.JobFinished, core.JobFailed, core.JobCancelled:
			if before, ended := o[e.Job]; ended {
				return fmt.Errorf("job %d ended twice: %s and %v", e.Job, before, e.Kind)
			}
			o[e.Job] = e.Kind.String()
		}
	}
	return nil
}

// operate is a scheduler that obeys the lines of its standard input, and ends with them.
func operate(policy, dir string) int {
	err := func() error {
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		opener := coretest.Component(New(realClock{}), map[string]any{"dir": dir, "grace": "200ms", "retry_delay": "20ms", "retry_delay_max": "100ms"}, log)
		opener.(*Opener).For(Run{Dir: dir, Identity: "test"})
		cluster := clusterOf(policy)
		opened, err := opener.Open(context.Background(), cluster, &workload.Workload{Open: true})
		if err != nil {
			return err
		}
		b := opened.(*Backend)
		ends := outcomes{}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer cancel()
			obeyLines(ctx, b, ends)
		}()
		stages, rounds := compose(policy, log)
		if err := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: rounds, Observers: []core.Observer{ends}}).Run(ctx, b); !errors.Is(err, context.Canceled) {
			return err
		}
		return b.Close()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func obeyLines(ctx context.Context, b *Backend, ends outcomes) {
	lines, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if lines.Decode(&o) != nil {
			return
		}
		var a answer
		err := func() (err error) {
			switch {
			case o.Submit != "":
				_, err = b.Submit(ctx, backend.JobFile{Name: "jobs.yaml", Text: []byte(o.Submit), Dir: "/"})
			case o.Cancel != "":
				err = b.Cancel(ctx, o.Cancel)
			case o.Drain != "":
				err = b.SetHealth(ctx, o.Drain, core.Draining)
			case o.Undrain != "":
				err = b.SetHealth(ctx, o.Undrain, core.Ready)
			default:
				err = b.wanted.Give(ctx, func() error {
					a = account(b, ends)
					return nil
				})
			}
			return err
		}()
		if err != nil {
			a.Error = err.Error()
		}
		if answers.Encode(a) != nil {
			return
		}
	}
}

func account(b *Backend, ends outcomes) answer {
	a := answer{Outcomes: map[string]string{}, Health: map[string]string{}}
	for _, j := range b.jobs {
		a.Outcomes[j.Spec.Name] = ends[j.Spec.ID]
	}
	for i, h := range b.health {
		a.Health[b.cluster.Nodes[i].Name] = h.String()
	}
	return a
}

// stepTime is how long a step of a training takes.
const stepTime = 10 * time.Millisecond

// train makes a checkpoint after each of its steps, and complains when one is lost. The ledger outlives everything.
func train(ledger, name string, steps int) int {
	e, err := agent.ReadEnvironment(os.LookupEnv)
	if err != nil {
		return 9
	}
	mine, witness := filepath.Join(e.Checkpoint, strconv.Itoa(e.Rank)), filepath.Join(ledger, "checkpoint-"+name)
	step := number(mine)
	if before := number(witness); step < before {
		note(ledger, "violations", fmt.Sprintf("%s begins at step %d, after a checkpoint of step %d", name, step, before))
	}
	var c *agent.Client
	if e.Rank == 0 {
		c = agent.Dial(e)
	}
	for ; step < steps; step++ {
		time.Sleep(stepTime)
		if setNumber(mine, step+1) != nil || setNumber(witness, step+1) != nil {
			return 9
		}
		if c.Checkpointed(float64(step+1)) != nil || c.Report(agent.Report{Replicas: e.Replicas, Nodes: e.Nodes, Progress: float64(step + 1)}) != nil {
			return 9
		}
		if c.Poll().Stop != nil {
			return 75
		}
	}
	note(ledger, "done", name)
	if c.Done() != nil {
		return 9
	}
	c.Close()
	return 0
}

// number is what a file holds, 0 when there is none.
func number(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return -1
	}
	return n
}

func setNumber(path string, n int) error {
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(n)), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// TestOperatedSchedulerIsKilled kills schedulers while they are given orders: after its answer an order must hold for good, and
// one without an answer must have been obeyed wholly or not at all. Every third life, keepers are killed too. What must hold
// besides is that of TestSchedulerIsKilled, and that no training begins before a checkpoint that it made.
func TestOperatedSchedulerIsKilled(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d, %d kills", *seed, *kills)
	rng := rand.New(rand.NewPCG(*seed, 1))
	for left, life := *kills, 0; left > 0; life++ {
		l := &aLife{
			t: t, rng: rng, number: life, policy: [...]string{patient, preempting, unhurried, leasing}[life%4], keepers: life%3 == 2,
			want: map[string]string{}, health: map[string]string{"a": "ready", "b": "ready"},
		}
		left -= l.live(min(left, mostInOneLife))
	}
}

// TestOperatedSchedulerOfSharedDevicesIsKilled is TestOperatedSchedulerIsKilled with parts of devices.
func TestOperatedSchedulerOfSharedDevicesIsKilled(t *testing.T) {
	t.Parallel()
	l := &aLife{
		t: t, rng: rand.New(rand.NewPCG(*seed, 3)), policy: sharing, keepers: true, want: map[string]string{}, health: map[string]string{"a": "ready", "b": "ready"},
	}
	l.live(mostInOneLife)
}

// aLife is one store, from the first scheduler on it to the last.
type aLife struct {
	t       *testing.T
	rng     *rand.Rand
	number  int
	policy  string
	keepers bool // are killed too

	ledger, dir string
	said        bytes.Buffer // standard error of the schedulers
	killed      int
	want        map[string]string // outcome of the jobs that were submitted; empty: any
	health      map[string]string // of the nodes, as last acknowledged
}

// plan lists the orders of a life.
func (l *aLife) plan() (list []order) {
	self := testProgram(l.t)
	job := func(i int, kind string, millis int) string {
		part := ""
		if l.policy == sharing {
			part = fmt.Sprintf(", share_milli: %d", [...]int{0, 333, 334, 500, 1000}[l.rng.IntN(5)])
		}
		return fmt.Sprintf("{name: job-%d, command: [%q, work, %q, %s, %q], replicas: %d, retries: 9%s}",
			i, self, l.ledger, strconv.Quote(kind), strconv.Itoa(millis), 1+l.rng.IntN(3), part)
	}
	for i := 0; i < 12; i += 2 {
		first, second := job(i, "plain", 20+l.rng.IntN(100)), job(i+1, "train", 5+l.rng.IntN(30))
		switch i {
		case 4:
			second = job(i+1, "plain", 3_600_000) // cancelled below
		case 6:
			first = job(i, "fork", 50)
			if l.keepers { // without a keeper nobody knows whose a child without the environment is
				first = job(i, "fork openly", 50)
			}
		case 8:
			first = job(i, "deaf", 50)
		}
		list = append(list, order{Submit: "{version: 1, jobs: [" + first + ", " + second + "]}"})
	}
	list = append(list, order{Cancel: "job-5"}, order{Drain: "a"}, order{Undrain: "a"}, order{Drain: "b"}, order{Undrain: "b"})
	l.rng.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	return append(list, order{Undrain: "a"}, order{Undrain: "b"})
}

func (l *aLife) live(most int) (killed int) {
	root := l.t.TempDir()
	l.ledger, l.dir = filepath.Join(root, "ledger"), filepath.Join(root, "live")
	if err := os.Mkdir(l.ledger, 0o700); err != nil {
		l.t.Fatal(err)
	}
	orders := l.plan()
	for ended := false; !ended; {
		orders, ended = l.scheduler(orders, l.killed < most)
	}
	l.judge(root)
	return l.killed
}

// scheduler starts one on the store and gives it orders, until it is killed or all is done. It returns the orders that were
// not acknowledged.
func (l *aLife) scheduler(orders []order, mortal bool) (left []order, ended bool) {
	c := exec.Command(testProgram(l.t), "operate", l.policy, l.dir)
	c.Stderr = &l.said
	in, err := c.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	limit := 2 * time.Minute
	if mortal {
		limit = time.Duration(l.rng.IntN(400_000)) * time.Microsecond
	}
	reaper := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
	answers := bufio.NewReader(out)
	ask := func(o order) (a answer, err error) {
		if err := json.NewEncoder(in).Encode(o); err != nil {
			return a, err
		}
		line, err := answers.ReadBytes('\n')
		if err != nil {
			return a, err
		}
		return a, json.Unmarshal(line, &a)
	}
	left, err = l.give(orders, ask)
	_ = in.Close()
	_, _ = io.Copy(io.Discard, answers)
	died := c.Wait()
	switch {
	case !reaper.Stop() && died != nil && mortal:
		l.killed++
		return left, false
	case err != nil || died != nil:
		l.t.Fatalf("life %d after %d kills: %v, %v\n%s", l.number, l.killed, err, died, l.said.String())
	}
	return nil, true
}

// give gives orders and waits until all jobs have ended.
func (l *aLife) give(orders []order, ask func(order) (answer, error)) (left []order, err error) {
	a, err := ask(order{})
	if err != nil {
		return orders, err
	}
	for job := range l.want {
		if _, known := a.Outcomes[job]; !known {
			l.t.Fatalf("life %d after %d kills: job %q was acknowledged and is lost", l.number, l.killed, job)
		}
	}
	for node, want := range l.health {
		if got := a.Health[node]; got != want && !l.underWay(orders, node) {
			l.t.Errorf("life %d after %d kills: node %q is %s, acknowledged was %s", l.number, l.killed, node, got, want)
		}
	}
	for len(orders) > 0 {
		if a, err = ask(orders[0]); err != nil {
			return orders, err
		}
		if later := l.acknowledge(&orders[0], a.Error); later {
			orders = append(orders[1:], orders[0])
			continue
		}
		orders = orders[1:]
		if l.keepers && l.rng.IntN(3) == 0 {
			l.killKeeper()
		}
	}
	for {
		if a, err = ask(order{}); err != nil {
			return nil, err
		}
		all := true
		for job, outcome := range a.Outcomes {
			if want := l.want[job]; outcome != "" && want != "" && outcome != want {
				l.t.Fatalf("life %d: job %q ended as %s, want %s", l.number, job, outcome, want)
			}
			all = all && outcome != ""
		}
		if all {
			return nil, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// underWay reports whether the first order, which may have been obeyed, is about a node.
func (l *aLife) underWay(orders []order, node string) bool {
	return len(orders) > 0 && (orders[0].Drain == node || orders[0].Undrain == node)
}

// acknowledge notes what must hold from now on; it returns true for an order that came too early.
func (l *aLife) acknowledge(o *order, problem string) (later bool) {
	switch {
	case o.Submit != "":
		if problem != "" && strings.Count(problem, "already") != 2 { // obeyed before, without an answer
			l.t.Fatalf("life %d after %d kills: submit: %s", l.number, l.killed, problem)
		}
		for _, line := range strings.Split(o.Submit, "name: ")[1:] {
			name, _, _ := strings.Cut(line, ",")
			if l.want[name] == "" {
				l.want[name] = core.JobFinished.String()
			}
		}
		if l.want["job-5"] != "" {
			l.want["job-5"] = core.JobCancelled.String()
		}
		return false
	case o.Cancel != "" && l.want[o.Cancel] == "":
		if problem == "" {
			l.t.Fatalf("life %d: cancelled job %q, which was never submitted", l.number, o.Cancel)
		}
		return true
	case problem != "":
		l.t.Fatalf("life %d after %d kills: %+v: %s", l.number, l.killed, *o, problem)
	case o.Drain != "":
		l.health[o.Drain] = core.Draining.String()
	case o.Undrain != "":
		l.health[o.Undrain] = core.Ready.String()
	}
	return false
}

// killKeeper kills any keeper of the life.
func (l *aLife) killKeeper() {
	for _, p := range keeper.Find(l.dir) {
		if p.Keeper {
			p.Kill()
			return
		}
	}
}

func (l *aLife) judge(root string) {
	if wrong := lines(l.t, l.ledger, "violations"); len(wrong) > 0 {
		l.t.Errorf("life %d: %q", l.number, wrong)
	}
	if len(l.want) != 12 {
		l.t.Errorf("life %d: %d jobs, want 12", l.number, len(l.want))
	}
	done := map[string]int{}
	for _, replica := range lines(l.t, l.ledger, "done") {
		job, _, _ := strings.Cut(strings.TrimPrefix(replica, "job-"), "-")
		done["job-"+job]++
	}
	for job, want := range l.want {
		if got := done[job]; (got > 0) != (want == core.JobFinished.String()) {
			l.t.Errorf("life %d: job %q is to be %s, and %d of its replicas did their work", l.number, job, want, got)
		}
	}
	for _, p := range keeper.Find(root) {
		l.t.Errorf("life %d: process %d of %s is left; a keeper: %v", l.number, p.PID, p.Run, p.Keeper)
	}
}
