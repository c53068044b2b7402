package metrics

import (
	"math"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// summarise sums up the records in the order of JobID, so that every sum has one value.
func (c *Collector) summarise(shares *shares, endSeconds float64) *Summary {
	s := &Summary{Schema: SummarySchema, Components: c.components, Earlier: c.earlier, Rounds: c.roundsHeld, WallSeconds: unknown}
	if c.window != AllJobs {
		s.Measured = &c.window
	}
	var (
		jcts, queueing   []float64
		rho, themis, sia rhos
		due              deadlines
		started          int
		attained         float64
		firstSubmit      = math.Inf(1)
		lastEnd          = math.Inf(-1)
	)
	for i := range c.records {
		r := &c.records[i]
		if r.spec == nil {
			continue
		}
		attained += r.attained - r.before
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
		due.add(r, c.promises, endSeconds)
		s.Restarts.Total += int(r.restarts)
		s.Preemptions += int(r.preemptions)
		if r.started() {
			started++
			queueing = append(queueing, r.queueing())
		}
		if r.outcome == completed {
			jcts = append(jcts, r.jct())
			f := shares.of(r)
			rho.add(f.rho)
			themis.add(f.themis)
			sia.add(f.sia)
		}
	}
	s.JCTSeconds, s.QueueingSeconds = Describe(jcts), Describe(queueing)
	s.MakespanSeconds, s.UtilizationRatio = Number(lastEnd-firstSubmit), unknown
	if s.MakespanSeconds.Known() {
		s.UtilizationRatio = Number(attained / c.capacity.total(shares.devices, firstSubmit, lastEnd))
	}
	s.GPUHours = Number(attained / 3600)
	s.Restarts.Mean = Number(float64(s.Restarts.Total) / float64(started))
	all := rho.describe()
	s.Fairness = Fairness{RhoMean: all.Mean, RhoMax: all.Max, UnfairRatio: all.UnfairRatio, Themis: themis.describe()}
	if c.alone != nil {
		described := sia.describe()
		s.Fairness.Sia = &described
	}
	s.Accelerators = c.acceleratorUse(firstSubmit, lastEnd)
	s.Deadlines, s.Tiers = due.describe(), c.tiers.describe(c.records, c.window, endSeconds)
	s.Quality, s.EndedEarly = c.quality.describe(c.window), c.early.describe(c.window)
	s.Pools, s.Bill = c.bill.ended(endSeconds).use()
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
	case cancelled:
		n.Cancelled++
	default:
		n.Unfinished++
	}
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

// set puts the components of a pipeline in their slots.
func (c *Components) set(ids *core.StageIDs) {
	c.Admission, c.Allocation, c.Placement, c.Elasticity, c.Scaler = ids.Admission, ids.Allocation, ids.Placement, ids.Elasticity, ids.Scaler
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
