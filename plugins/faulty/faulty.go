// Package faulty is a plugin that goes wrong in every way that we have seen, for the tests of those who must survive it.
// Until something goes wrong, and with no fault at all, its policies are the simplest that work.
package faulty

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/sdk"
)

// Round is the first round in which something goes wrong, unless a fault names another.
const Round = 3

// Config chooses what goes wrong.
type Config struct {
	// Fault lists what goes wrong, such as "hang" or "exit@5,panic@7".
	Fault string `config:"fault" doc:"What goes wrong, as a list such as hang or exit@5,panic@7: at the first question in that round or later."`
	// Marker is the prefix of files that keep a fault from happening twice; empty for a fault every time.
	Marker string `config:"marker" doc:"Prefix of files that are made when something goes wrong, and keep it from going wrong again; empty for every time."`
}

// Anywhere lists the faults that every stage has and that end its process or its call.
var Anywhere = []string{"panic", "panic_elsewhere", "exit", "kill", "stop", "hang", "error", "nasty_error", "stray_exit", "daemon_exit"}

// Harmless lists what every stage may do without a failure.
var Harmless = []string{"", "slow", "print", "odd_log", "flood", "stray", "daemon"}

// Answers lists the wrong answers of each stage.
var Answers = map[string][]string{
	"admission":  {"unknown_reason", "unknown_code", "other_job", "no_evidence", "huge"},
	"allocation": {"too_many_replicas", "unknown_job", "no_job", "huge_job", "twice", "unknown_type", "far_proposal", "double_proposal", "wrong_gap", "no_standing"},
	"placement":  {"double_seat", "far_seat", "half_gang", "unanswered"},
	"elasticity": {"nan_rate", "infinite_rate", "negative_rate", "no_range", "huge_range", "unanswered", "nan_tuning", "infinite_tuning"},
	"scaler":     {"negative_target"},
}

// Factories are the components of the plugin, one of each stage, all of type faulty.
func Factories() []sdk.Factory {
	return []sdk.Factory{
		factory[core.Admitter]("admits everybody"),
		factory[core.Allocator]("grants everybody the least"),
		factory[core.Placer]("seats the first first"),
		factory[core.Elasticity]("runs each job as it was asked for"),
		factory[core.ClusterScaler]("wants no nodes"),
	}
}

func factory[S any](summary string) core.Factory[S] {
	info := core.Info{Type: "faulty", Summary: summary + ", until something goes wrong"}
	return core.NewFactory(info, Config{}, func(c Config, _ core.Settings) (stage S, err error) {
		stage, _ = any(&Policy{Config: c}).(S)
		return stage, nil
	})
}

// Policy is a policy of every stage. The zero value never goes wrong.
type Policy struct {
	Config
	fault string // of the question at hand
}

// due is what goes wrong now, of the given faults; empty for nothing.
func (p *Policy) due(v *core.View, answers []string) string {
	p.fault = ""
	for name := range strings.SplitSeq(p.Fault, ",") {
		name, at, timed := strings.Cut(name, "@")
		round, err := strconv.Atoi(at)
		if !timed || err != nil {
			round = Round
		}
		if name == "" || v.Round < round || !slices.Contains(Anywhere, name) && !slices.Contains(Harmless, name) && !slices.Contains(answers, name) {
			continue
		}
		if p.Marker != "" {
			file, err := os.OpenFile(fmt.Sprintf("%s-%s-%d", p.Marker, name, round), os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				continue
			}
			_ = file.Close()
		}
		p.fault = name
		return name
	}
	return ""
}

// misbehave does what every stage may do.
func (p *Policy) misbehave() error {
	switch p.fault {
	case "panic":
		panic("index out of luck")
	case "panic_elsewhere", "exit", "kill", "stop", "hang":
		endOrHang(p.fault)
	case "slow":
		time.Sleep(20 * time.Millisecond)
	case "error":
		return errors.New("the model is not loaded")
	case "nasty_error":
		return errors.New("\x1b[31mred\x1b[0m\x00\xff\x1b]0;owned\x07" + strings.Repeat("x", 1<<19))
	case "print", "odd_log", "flood":
		write(p.fault)
	case "stray", "daemon", "stray_exit", "daemon_exit":
		return startChild(p.fault)
	}
	return nil
}

// endOrHang ends or stops this process, or its call.
func endOrHang(fault string) {
	switch fault {
	case "panic_elsewhere":
		go panic("nobody recovers from this")
	case "exit":
		fmt.Fprintln(os.Stderr, "the licence server is gone")
		os.Exit(3)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	select {}
}

// write writes what a plugin should not: to stdout, in odd forms, or too much.
func write(fault string) {
	switch fault {
	case "print":
		fmt.Println("a word on stdout")
		fmt.Fprintln(os.Stderr, "a word on stderr")
	case "odd_log":
		for _, line := range []string{
			`{"@message":1}`, `{"@message":"m","@timestamp":5}`, `{"@level":{},"@message":[1]}`, `{"@message":null,"@level":"info"}`,
			`{"@message":"an odd entry","@level":"error","a":{"b":1},"@timestamp":true}`, "{", "null", "[]", "\x1b[2J\x00\xff",
		} {
			fmt.Fprintln(os.Stderr, line)
		}
	case "flood":
		line := strings.Repeat("flood ", 1<<17) + "\n"
		for range 20 {
			fmt.Fprint(os.Stderr, line)
		}
		fmt.Fprint(os.Stderr, strings.Repeat("drop\n", 10_000))
	}
}

// startChild starts a process that outlives this one if it can, and may end this one.
func startChild(fault string) error {
	child := exec.Command("sleep", "1000")
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: strings.HasPrefix(fault, "daemon")}
	if err := child.Start(); err != nil {
		return err
	}
	if strings.HasSuffix(fault, "exit") {
		os.Exit(3)
	}
	return nil
}

// Admit admits everybody.
func (p *Policy) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	if len(waiting) == 0 || p.due(v, Answers["admission"]) == "" {
		return nil, nil
	}
	verdict := core.Verdict{Job: waiting[0].ID, Code: core.Defer, Reason: core.PolicyDecision}
	switch p.fault {
	case "unknown_reason":
		verdict.Reason = 99
	case "unknown_code":
		verdict.Code = 99
	case "other_job":
		verdict.Job = 7777
	case "no_evidence":
		verdict.Wanted = math.NaN()
	case "huge":
		verdict.Message = strings.Repeat("x", 100<<20)
	default:
		return nil, p.misbehave()
	}
	return []core.Verdict{verdict}, nil
}

// Allocate grants every candidate its least.
func (p *Policy) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	var grants []core.Grant
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MinReplicas})
	}
	if len(grants) == 0 || p.due(v, Answers["allocation"]) == "" {
		return grants, nil
	}
	switch first := &grants[0]; p.fault {
	case "too_many_replicas":
		first.Replicas = 9
	case "unknown_job":
		first.Job = 7777
	case "no_job":
		first.Job = -1
	case "huge_job":
		first.Job = math.MaxInt32
	case "twice":
		grants = append(grants, *first)
	case "unknown_type":
		first.Accelerator = 5
	case "far_proposal":
		first.Proposed = []core.Seat{{Node: 7777, Devices: 1}}
	case "double_proposal":
		first.Proposed = []core.Seat{{Node: 0, Devices: 1}, {Node: 0, Devices: 1}}
	}
	return grants, p.misbehave()
}

// GapRatio knows nothing.
func (p *Policy) GapRatio() float64 {
	if p.fault == "wrong_gap" {
		return math.Inf(1)
	}
	return math.NaN()
}

// Standing promises nothing.
func (p *Policy) Standing() core.Standing {
	if p.fault == "no_standing" {
		return core.Standing{UntilSeconds: math.NaN()}
	}
	return core.Standing{UntilSeconds: math.Inf(-1)}
}

// Place keeps what runs and seats the others on the first free devices, each on one node.
func (p *Policy) Place(_ context.Context, v *core.View, grants []core.Grant) (s core.Seating, err error) {
	var ledger core.Ledger
	ledger.Reset(v.Cluster)
	for _, g := range grants {
		ledger.Occupy(v.Job(g.Job).Seats)
	}
	for _, g := range grants {
		seats := v.Job(g.Job).Seats
		for n := range v.Cluster.Nodes {
			if len(seats) == 0 && ledger.Free(core.NodeID(n)) >= g.Replicas {
				seats = []core.Seat{ledger.Take(core.NodeID(n), g.Replicas)}
			}
		}
		if len(seats) == 0 {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.Fragmented})
			continue
		}
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
	}
	if len(s.Placed) == 0 || p.due(v, Answers["placement"]) == "" {
		return s, nil
	}
	switch first := &s.Placed[0]; p.fault {
	case "double_seat":
		first.Seats = []core.Seat{first.Seats[0], first.Seats[0]}
	case "far_seat":
		first.Seats = []core.Seat{{Node: 7777, Devices: first.Seats[0].Devices}}
	case "half_gang":
		first.Seats = nil
	case "unanswered":
		s.Placed = s.Placed[1:]
	}
	return s, p.misbehave()
}

// Respond answers with what each job asked for.
func (p *Policy) Respond(_ context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses := make([]core.Response, len(jobs))
	for i, j := range jobs {
		responses[i] = core.Response{Job: j.ID, MinReplicas: j.Requested, MaxReplicas: j.Requested, RemainingWork: math.NaN()}
	}
	if len(jobs) == 0 || p.due(v, Answers["elasticity"]) == "" {
		return responses, nil
	}
	rate := func(x float64) { responses[0].Curves = []core.Curve{{OneNode: []float64{x}}} }
	switch p.fault {
	case "nan_rate":
		rate(math.NaN())
	case "infinite_rate":
		rate(math.Inf(1))
	case "negative_rate":
		rate(-1)
	case "no_range":
		responses[0].MaxReplicas = 0
	case "huge_range":
		responses[0].MaxReplicas = math.MaxInt32
	case "unanswered":
		responses = responses[1:]
	}
	return responses, p.misbehave()
}

// Tune leaves everything to the jobs.
func (p *Policy) Tune(_ context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	if fault := p.fault; fault == "nan_tuning" || fault == "infinite_tuning" {
		p.fault = ""
		return []core.Tuning{{Job: placements[0].Job, LearningRateFactor: map[string]float64{"nan_tuning": math.NaN(), "infinite_tuning": math.Inf(1)}[fault]}}, nil
	}
	return nil, nil
}

// Scale wants no nodes.
func (p *Policy) Scale(_ context.Context, v *core.View, _ *core.Plan) (core.ClusterTarget, error) {
	if p.due(v, Answers["scaler"]) == "negative_target" {
		return core.ClusterTarget{Nodes: -1}, nil
	}
	return core.ClusterTarget{}, p.misbehave()
}

// Sockets lists the folders of sockets under the folder for temporary files, of which none may be left.
func Sockets(temporary string) []string {
	found, _ := filepath.Glob(filepath.Join(temporary, "quartet-*"))
	return found
}

// Left lists the processes whose environment holds a text, and what they run.
func Left(text string) []string {
	var left []string
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		environment, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(environment), text) {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		left = append(left, filepath.Base(filepath.Dir(path))+" "+strings.ReplaceAll(string(command), "\x00", " "))
	}
	return left
}
