package metrics

import (
	"math"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// summarise sums up the records in the order of JobID, so that every sum has one value.
func (c *Collector) summarise(endSeconds float64) *Summary {
	s := &Summary{Schema: SummarySchema, Components: c.components, Rounds: c.roundsHeld, WallSeconds: unknown}
	if c.window != AllJobs {
		s.Measured = &c.window
	}
	var (
		jcts, queueing, rhos []float64
		started              int
		attained             float64
		firstSubmit          = math.Inf(1)
		lastEnd              = math.Inf(-1)
		devices              int
	)
	if c.cluster != nil {
		devices = c.cluster.Devices()
	}
	for i := range c.records {
		r := &c.records[i]
		if r.spec == nil {
			continue
		}
		attained += r.attained
		firstSubmit = min(firstSubmit, r.spec.SubmitSeconds)
		if r.outcome == unfinished {
			lastEnd = max(lastEnd, endSeconds)
		} else if !math.IsNaN(r.finish) {
			lastEnd = max(lastEnd, r.finish)
		}
		if !c.window.Holds(r.spec.ID) {
			continue
		}
		s.Jobs.count(r.outcome)
		s.Restarts.Total += int(r.restarts)
		s.Preemptions += int(r.preemptions)
		if !math.IsNaN(r.firstStart) {
			started++
			queueing = append(queueing, r.queueing())
		}
		if r.outcome == completed {
			jcts = append(jcts, r.jct())
			if rho, ok := r.rho(devices); ok {
				rhos = append(rhos, rho)
			}
		}
	}
	s.JCTSeconds, s.QueueingSeconds = Describe(jcts), Describe(queueing)
	s.MakespanSeconds, s.UtilizationRatio = Number(lastEnd-firstSubmit), unknown
	if s.MakespanSeconds.Known() {
		s.UtilizationRatio = Number(attained / (float64(devices) * (lastEnd - firstSubmit)))
	}
	s.GPUHours = Number(attained / 3600)
	s.Restarts.Mean = Number(float64(s.Restarts.Total) / float64(started))
	s.Fairness = fairness(rhos)
	s.GapRatio = c.gaps.describe()
	s.DecisionSeconds = c.decisionSeconds()
	return s
}

// gaps adds up certified gaps.
type gaps struct {
	count    int
	sum, max float64
}

func (g *gaps) add(gap float64) {
	if math.IsNaN(gap) {
		return
	}
	g.count++
	g.sum += gap
	g.max = max(g.max, gap)
}

func (g *gaps) describe() Gap {
	if g.count == 0 {
		return Gap{Mean: unknown, Max: unknown}
	}
	return Gap{Mean: Number(g.sum / float64(g.count)), Max: Number(g.max)}
}

func (n *JobCounts) count(o outcome) {
	n.Submitted++
	switch o {
	case completed:
		n.Completed++
	case rejected:
		n.Rejected++
	case failed:
		n.Failed++
	default:
		n.Unfinished++
	}
}

func fairness(rhos []float64) Fairness {
	all := Describe(rhos)
	unfair := 0
	for _, rho := range rhos {
		if rho > unfairAbove {
			unfair++
		}
	}
	return Fairness{RhoMean: all.Mean, RhoMax: all.Max, UnfairRatio: Number(float64(unfair) / float64(len(rhos)))}
}

func (c *Collector) decisionSeconds() DecisionTimes {
	t := DecisionTimes{
		Mean: c.decisionTimes.mean(), P99: c.decisionTimes.quantile(0.99), Max: unknown,
		ByComponent: []ComponentTime{},
	}
	if c.roundsHeld == 0 {
		return t
	}
	t.Max = Number(c.decisionTimes.max.Seconds())
	for i, stage := range core.StageNames {
		t.ByComponent = append(t.ByComponent, ComponentTime{
			Component: c.components.inStage(stage), Stage: stage,
			Mean: Number(c.stageTotal[i].Seconds() / float64(c.roundsHeld)), Max: Number(c.stageMax[i].Seconds()),
		})
	}
	return t
}

// inStage names the components that a timed step of the round calls.
func (c *Components) inStage(stage string) string {
	switch stage {
	case "admit":
		return strings.Join(c.Admission, "+")
	case "allocate":
		return c.Allocation
	case "place":
		return c.Placement
	default: // respond, tune
		return c.Elasticity
	}
}
