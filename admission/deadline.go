package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/promise"
)

// DeadlineConfig configures NewDeadline.
type DeadlineConfig struct {
	// Overhead is how long a job stands still after each change of its devices.
	Overhead time.Duration `config:"overhead" doc:"how long a job stands still after each change of its devices; less than it is in truth breaks promises" min:"0s"`
	// Levels says which numbers of devices are planned with: the least times powers of two, or all.
	Levels string `config:"levels" doc:"numbers of devices that are planned with: the least that a job can run with times powers of two, or all" enum:"powers_of_two|all"`
}

// PlannedOverhead is the overhead.
func (c DeadlineConfig) PlannedOverhead() (overhead time.Duration, setting string) {
	return c.Overhead, "overhead"
}

// NewDeadline admits a job with a deadline if it can be done by then, and all that are admitted by theirs.
//
// Source: Gu et al., ElasticFlow (ASPLOS'23), progressive filling: the jobs are planned in the order of their deadlines, each on as few
// devices as its deadline allows and as late as possible, on what those before it leave. A job that does not fit, or for which
// another one would not, is declined.
//
// Deviations: each job is asked about by itself, in JobID order, where the released code declines all jobs of a round if one of them
// does not fit. Time has no slots. Changes cost what they do, and a broken promise keeps nobody out. A job without a deadline, or one
// that is best effort, is admitted, and nothing is planned for it. Where nodes may join, a job waits as long as more devices could
// help, which are there when nodes are expected, or pools have some as a rule. Jobs of unknown length are promised nothing, and so declined. Where devices are of several types each job is planned on one, the type on
// which it needs the fewest device-seconds of those on which it meets its deadline.
// O(jobs × types × levels × changes of plans) for each job, of those with a deadline.
func NewDeadline() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "deadline",
		Summary: "admits a job with a deadline only if all deadlines can be met",
		Description: "Plans all jobs with a deadline in the order of their deadlines, each as late and on as few devices as possible (progressive filling), and declines a job that cannot be done in time or for which another admitted one would not. " +
			"Jobs without a deadline, and best effort ones, are admitted. Needs an elasticity that gives rates, or declared durations, and with the allocation elasticflow promises are kept. " +
			"Rounds need an interval, for plans change at its multiples. O(jobs × levels × changes of plans) a round.",
		Source:       "ElasticFlow, ASPLOS'23",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, DeadlineConfig{Levels: promise.PowersOfTwo}, func(c DeadlineConfig, _ core.Settings) (core.Admitter, error) {
		return &deadline{
			ledger:   promise.Ledger{Planner: promise.Planner{Overhead: c.Overhead.Seconds()}, Levels: c.Levels},
			standing: core.Standing{UntilSeconds: math.Inf(1)},
		}, nil
	})
}

type deadline struct {
	ledger   promise.Ledger
	applying []int // waiting jobs that a deadline could be promised to
	tried    []*promise.Entry
	declined []int
	types    []promise.Job // of the job that is declined
	verdicts []core.Verdict
	standing core.Standing
}

// Standing is for ever, and for no time while a job waits for more devices.
func (p *deadline) Standing() core.Standing { return p.standing }

// Admit answers where there are no curves, so that nothing can be promised.
func (p *deadline) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return nil, errors.New("deadline: asked without what jobs do with accelerators")
}

func (p *deadline) AdmitCandidates(_ context.Context, v *core.View, admitted, waiting []core.Candidate) ([]core.Verdict, error) {
	l := &p.ledger
	p.verdicts, p.applying, p.declined = p.verdicts[:0], p.applying[:0], p.declined[:0]
	p.standing.UntilSeconds = math.Inf(1)
	l.Collect(v, admitted)
	for i := range waiting {
		if promise.Promised(waiting[i].JobSpec) {
			p.applying = append(p.applying, i)
		}
	}
	if len(p.applying) == 0 {
		return nil, nil
	}
	for _, e := range l.Jobs() {
		e.Kept = true
	}
	if p.try(v, waiting, p.applying) {
		return nil, nil
	}
	broken := false
	for _, e := range l.Jobs() {
		e.Kept = l.Hopes(e) // what is broken keeps nobody out
		broken = broken || !e.Kept
	}
	if !broken && len(p.applying) == 1 {
		p.declined = append(p.declined, p.applying[0])
	} else {
		p.tryAll(v, waiting, p.withHope(v, waiting, p.applying))
	}
	if len(p.declined) > 0 {
		slices.Sort(p.declined)
		l.Plan()
	}
	for _, i := range p.declined {
		p.verdicts = append(p.verdicts, p.decline(v, &waiting[i]))
	}
	return p.verdicts, nil
}

// try admits the applying all at once if that is possible.
func (p *deadline) try(v *core.View, waiting []core.Candidate, applying []int) bool {
	l := &p.ledger
	p.tried = p.tried[:0]
	for _, i := range applying {
		p.tried = append(p.tried, l.Apply(v, &waiting[i], i))
	}
	if l.Keeps() {
		return true
	}
	for _, e := range p.tried {
		l.Withdraw(e)
	}
	return false
}

// tryAll admits the applying all at once if that is possible, and otherwise one half after the other.
func (p *deadline) tryAll(v *core.View, waiting []core.Candidate, applying []int) {
	switch half := len(applying) / 2; {
	case len(applying) == 0:
	case p.try(v, waiting, applying):
	case half == 0:
		p.declined = append(p.declined, applying[0])
	default:
		p.tryAll(v, waiting, applying[:half])
		p.tryAll(v, waiting, applying[half:])
	}
}

// withHope are those of the applying that could be done in time on a cluster of their own. The others are declined.
func (p *deadline) withHope(v *core.View, waiting []core.Candidate, applying []int) []int {
	return slices.DeleteFunc(applying, func(i int) bool {
		p.types = p.ledger.Types(v, &waiting[i], p.types[:0])
		if slices.ContainsFunc(p.types, func(j promise.Job) bool { return p.ledger.Hopeful(&j) }) {
			return false
		}
		p.declined = append(p.declined, i)
		return true
	})
}

// decline tells a job why it cannot be done in time.
func (p *deadline) decline(v *core.View, c *core.Candidate) core.Verdict {
	l := &p.ledger
	p.types = l.Types(v, c, p.types[:0])
	j := slices.MinFunc(p.types, func(a, b promise.Job) int {
		switch {
		case a.Plannable() == b.Plannable():
			return cmp.Compare(l.Earliest(&a), l.Earliest(&b))
		case a.Plannable():
			return -1
		}
		return 1
	})
	verdict := core.Verdict{Job: c.ID, Code: core.Reject, Reason: core.DeadlineUnreachable}
	if !j.Plannable() {
		verdict.Message = "how long it takes is not known"
		return verdict
	}
	verdict.Wanted, verdict.Available, verdict.Unit = j.Cheapest(), l.FreeFor(&j), "device-seconds"
	earliest, there, of := l.Earliest(&j), l.Devices(j.Bin), ""
	if on := l.On(j.Bin); on != core.AnyAccelerator {
		of = " of " + v.Cluster.Accelerators[on]
	}
	fastest := p.fastest(v.NowSeconds, p.types)
	hoped := fastest
	grows := grows(v.Cluster)
	if grows {
		p.types, hoped = l.Hoped(v, c, p.types[:0]), math.Inf(1)
		for i := range p.types {
			if !p.types[i].Plannable() {
				continue // it is not known how fast it is there
			}
			hoped = min(hoped, p.types[i].FastestWith(v.NowSeconds, l.Overhead, l.Devices(p.types[i].Bin), l.More(v, p.types[i].Bin)))
		}
	}
	switch {
	case j.Deadline <= v.NowSeconds:
		verdict.Message = fmt.Sprintf("its deadline was %s ago", span(v.NowSeconds-j.Deadline))
	case hoped > j.Deadline:
		verdict.Message = fmt.Sprintf("it takes %s at least and has %s", span(hoped-v.NowSeconds), span(j.Deadline-v.NowSeconds))
	case grows:
		verdict.Code, verdict.Reason = core.Defer, core.AwaitingNodes
		p.standing.UntilSeconds = math.Inf(-1) // who gets along otherwise than planned changes what is free, at any moment
		fallthrough
	default:
		verdict.Message = fmt.Sprintf("needs %s%s, and %s are free until then", deviceTime(verdict.Wanted, math.Ceil), of, deviceTime(verdict.Available, math.Floor))
		switch {
		case there < j.Levels[0].Replicas:
			verdict.Message += fmt.Sprintf("; it needs %d at once, and there are %d", j.Levels[0].Replicas, there)
		case fastest > j.Deadline:
			verdict.Message += fmt.Sprintf("; on all there are it takes %s, and has %s", span(fastest-v.NowSeconds), span(j.Deadline-v.NowSeconds))
		case earliest <= j.Deadline:
			verdict.Message += "; one with a later deadline would miss it"
		case !math.IsInf(earliest, 1):
			verdict.Message += fmt.Sprintf("; it would be done %s late", span(earliest-j.Deadline))
		}
	}
	return verdict
}

// fastest is when a job is done at the earliest on the type on which it is the fastest.
func (p *deadline) fastest(nowSeconds float64, types []promise.Job) float64 {
	best := math.Inf(1)
	for i := range types {
		best = min(best, types[i].Fastest(nowSeconds, p.ledger.Overhead))
	}
	return best
}

// grows reports whether there may be more devices: nodes may join, or are on their way.
func grows(c *core.Cluster) bool {
	return c.MayGrow || slices.ContainsFunc(c.Nodes, func(n core.Node) bool { return n.Health == core.Provisioning })
}

// deviceTime writes device-seconds, rounded; hours with a digit where there are some.
func deviceTime(seconds float64, round func(float64) float64) string {
	if seconds < 3600 {
		return fmt.Sprintf("%.0f device-seconds", round(seconds))
	}
	return fmt.Sprintf("%.1f device-hours", round(seconds/360)/10)
}

// span writes seconds as a duration, in whole seconds.
func span(seconds float64) string {
	return core.FormatDuration(time.Duration(math.Ceil(min(seconds, 1e9))) * time.Second)
}

// Promises that each deadline of an admitted job will be met.
func (p *deadline) Promises() bool { return true }
