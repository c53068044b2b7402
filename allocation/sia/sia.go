// Package sia allocates devices of several accelerator types by the goodput that each job would have of each.
package sia

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
	"github.com/quartet-sched/quartet/core/restart"
)

// Config configures New.
type Config struct {
	// Power is the exponent of a job's goodput in the objective: 1 sums, lower is fairer; -0.5 as published.
	Power float64 `config:"power" doc:"of a job's goodput against its least: 1 is the sum, 0 the product, the lower the more even; -0.5 as published" min:"-20" max:"1"`
	// WaitingPenalty is what a job without devices costs, above 1, which is what its cheapest configuration costs.
	WaitingPenalty float64 `config:"waiting_penalty" doc:"what a job without devices costs, above 1, which is what the least of its configurations costs" min:"1"`
	restart.Cost   `required:"application_overhead.application application_overhead.overhead"`

	// ClampRestarts makes running a job better than leaving it, however often it was restarted.
	ClampRestarts bool `config:"clamp_restarts" doc:"however often a job was restarted, running it is better than leaving it; as published it is not"`
	// FinishRestarts lets a job that is restarting keep what it has.
	FinishRestarts bool `config:"finish_restarts" doc:"a job that is restarting keeps what it has"`
	// MostNodes are how many nodes of single accelerator types a job may span; no limit for others.
	MostNodes []MostNodes `config:"most_nodes" doc:"nodes of single accelerator types that a job may span; no limit for others"`
	// Types says whether utilities differ by accelerator type (each) or not (blind).
	Types string `config:"types" doc:"each: a job is worth on a type what it does there; blind: on all types the same, what it does on their devices on average" enum:"each|blind"`
	// Digits is to how many decimals utilities are rounded; 0 does not round.
	Digits int `config:"digits" doc:"decimals that utilities are rounded to, 2 as published; 0 does not round" min:"0" max:"12"`
	// Gap is the part of the best value that a choice may fall short of it.
	Gap float64 `config:"gap" doc:"part of the best value that a choice may fall short of it" min:"0" max:"1"`
}

// MostNodes bounds the nodes of one type that a job may span.
type MostNodes struct {
	// Accelerator is the accelerator type.
	Accelerator string `config:"accelerator" required:"true" doc:"accelerator type"`
	// Nodes is how many nodes a job may span.
	Nodes int `config:"nodes" required:"true" doc:"nodes that a job may span" min:"1"`
}

// The values of Config.Types.
const (
	eachType   = "each"
	blindTypes = "blind"
)

// Validate reports what is listed twice.
func (c Config) Validate() error {
	var problems []error
	if !(c.WaitingPenalty > 1) {
		problems = append(problems, errors.New("waiting_penalty: must be above 1, or no job would run"))
	}
	problems = append(problems, c.Cost.Validate())
	for i, m := range c.MostNodes {
		if slices.ContainsFunc(c.MostNodes[:i], func(earlier MostNodes) bool { return earlier.Accelerator == m.Accelerator }) {
			problems = append(problems, fmt.Errorf("most_nodes[%d].accelerator: %q is listed twice", i, m.Accelerator))
		}
	}
	return errors.Join(problems...)
}

// Default is the published objective, with restarts clamped and utilities not rounded.
var Default = Config{
	Power: -0.5, WaitingPenalty: 1.1, Cost: restart.Cost{RestartOverhead: 30 * time.Second}, ClampRestarts: true, FinishRestarts: true, Types: eachType, Gap: 1e-4,
}

// New chooses for every job a number of devices of one type, or none, so that
// the sum of the jobs' utilities is highest.
//
// A configuration is a power of two devices on one node, or some whole nodes, of one type. Its utility is a power of
// the job's goodput there, as a multiple of the least it could have, and less after a restart the more of its life the
// job has lost to restarts. Choosing is a knapsack with a capacity for each type, solved to a proven gap. Jobs that
// cannot be resized have one configuration a type. Devices are proposed largest job first, whole nodes first; who keeps
// its configuration keeps its devices, unless they are in the way of a larger job; pinned jobs always do.
//
// With types blind, what the types of the cluster do for a job is averaged over their devices, for comparison.
//
// Source: Sia (SOSP'23), section 3. Deviations: ties go to the configuration that a job has. O(jobs × configurations) a
// round, times the iterations of the knapsack.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "sia",
		OneType: true,
		Summary: "chooses devices of one of several types for each job, by goodput",
		Description: "Weighs how much each job gains from configurations of each accelerator type, by curves from elasticity, and solves the " +
			"choice to a proven gap. Proposes seats: use placement proposed.",
		Source: "Sia, SOSP'23, section 3",
	}, Default, func(c Config, _ core.Settings) (core.Allocator, error) {
		return &allocator{config: c, knapsack: optim.Knapsack{Gap: c.Gap}}, nil
	})
}

type allocator struct {
	config   Config
	knapsack optim.Knapsack
	types    []kind
	capacity []int
	pinned   core.Once
	menus    []optim.Menu
	choices  []optim.Choice
	grants   []core.Grant
	seats    seats
	gap      float64 // proven of the last choice, as a part of its value
}

// Allocate answers with the grants of each type, larger ones first.
func (p *allocator) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.survey(v.Cluster)
	p.menus, p.choices = p.menus[:0], p.choices[:0]
	for i := range candidates {
		p.menus = append(p.menus, p.menu(v, &candidates[i]))
	}
	chosen, err := p.knapsack.Solve(ctx, p.capacity, p.menus)
	if errors.Is(err, optim.ErrKnapsackInfeasible) { // those in restart cannot all stay
		for i := range p.menus {
			p.menus[i].Forced = false
		}
		chosen, err = p.knapsack.Solve(ctx, p.capacity, p.menus)
	}
	if err != nil {
		return nil, err
	}
	p.gap = chosen.Gap()
	return p.seat(v, candidates, chosen.Picks), nil
}

// GapRatio is the proven distance of the last choice from the best one, as a part of its value.
func (p *allocator) GapRatio() float64 { return min(max(p.gap, 0), 1) }

// menu lists what a job can choose from: nothing, if it is pinned to what it has, which is then no longer to be had.
func (p *allocator) menu(v *core.View, c *core.Candidate) optim.Menu {
	if c.MustStay(v.Cluster, c.Response) {
		for _, s := range c.Seats {
			p.capacity[v.Cluster.Nodes[s.Node].Accelerator] -= p.pinned.Count(s)
		}
		return optim.Menu{}
	}
	first := len(p.choices)
	has, held := typeOf(v.Cluster, c.Seats), c.Held
	staying := p.config.FinishRestarts && held > 0 && c.ProgressAsOf > v.NowSeconds && p.usable(v.Cluster, c.Seats)
	for t := range p.types {
		if !c.CanRunOn(v.Cluster, core.AcceleratorID(t)) {
			continue
		}
		p.types[t].each(c.Response.MinReplicas, c.Response.MaxReplicas, func(n int) {
			if rate := p.rate(v.Cluster, c, core.AcceleratorID(t), n); rate > 0 && !math.IsInf(rate, 1) {
				p.choices = append(p.choices, optim.Choice{Type: t, Devices: n, Value: rate})
			}
		})
	}
	choices := p.choices[first:]
	least := math.Inf(1)
	for i := range choices {
		least = min(least, choices[i].Value)
	}
	left := p.restartFactor(v, c)
	for i := range choices {
		stays := core.AcceleratorID(choices[i].Type) == has && choices[i].Devices == held
		goodput := choices[i].Value / least * float64(c.Response.MinReplicas)
		if held > 0 && !stays {
			goodput *= left
			if p.config.ClampRestarts {
				goodput = max(goodput, float64(c.Response.MinReplicas))
			}
		}
		choices[i].Value = p.value(goodput)
		if stays {
			if staying {
				p.choices[first] = choices[i]
				p.choices = p.choices[:first+1]
				return optim.Menu{Choices: slices.Clip(p.choices[first:]), Forced: true}
			}
			choices[i].Value += tie
		}
	}
	return optim.Menu{Choices: slices.Clip(choices)}
}

// tie is what makes a job stay where something else is as good.
const tie = 1e-7

// rate is the goodput that a job is taken to have on n devices of a type.
func (p *allocator) rate(cluster *core.Cluster, c *core.Candidate, t core.AcceleratorID, n int) float64 {
	rate := p.rateOn(c.Response, t, n)
	if p.config.Types != blindTypes || rate == 0 {
		return rate
	}
	sum, devices := 0.0, 0
	for other := range p.types {
		if !c.CanRunOn(cluster, core.AcceleratorID(other)) {
			continue
		}
		if rate := p.rateOn(c.Response, core.AcceleratorID(other), n); rate > 0 {
			sum += rate * float64(p.types[other].devices)
			devices += p.types[other].devices
		}
	}
	return sum / float64(devices)
}

// rateOn is the goodput of n devices of a type by the curve of it; without curves, devices count alike.
func (p *allocator) rateOn(r *core.Response, t core.AcceleratorID, n int) float64 {
	if len(r.Curves) == 0 {
		return float64(n)
	}
	return r.Rate(t, n, p.types[t].perNode)
}

// restartFactor is the part of a job's goodput that is left when its configuration changes.
func (p *allocator) restartFactor(v *core.View, c *core.Candidate) float64 {
	pause := p.config.PauseOf(c.Application, c.Requested).Seconds()
	return restart.MatureAge.SpeedLeft(restart.Weighing{Pause: pause, Past: pause, Restarts: c.Restarts, Age: v.NowSeconds - c.SubmitSeconds})
}

// worst bounds the cost of a configuration, as published.
const worst = 3000

// value is what a goodput is worth against leaving the job without devices.
func (p *allocator) value(goodput float64) float64 {
	power, utility := p.config.Power, 0.0
	if power == 0 {
		utility = math.Log(max(goodput, 1e-9))
	} else {
		utility = min(math.Pow(goodput, power), worst)
	}
	if p.config.Digits > 0 {
		unit := math.Pow(10, float64(p.config.Digits))
		utility = math.RoundToEven(utility*unit) / unit
	}
	if power < 0 {
		return p.config.WaitingPenalty - utility
	}
	return p.config.WaitingPenalty + utility
}

// typeOf is the one accelerator type of some seats; AnyAccelerator if there is none.
func typeOf(c *core.Cluster, seats []core.Seat) core.AcceleratorID {
	one := core.AnyAccelerator
	for i, s := range seats {
		if t := c.Nodes[s.Node].Accelerator; i == 0 {
			one = t
		} else if t != one {
			return core.AnyAccelerator
		}
	}
	return one
}

// usable reports whether all devices of some seats are.
func (p *allocator) usable(c *core.Cluster, seats []core.Seat) bool {
	return !slices.ContainsFunc(seats, func(s core.Seat) bool { return s.Devices&^c.Nodes[s.Node].Usable() != 0 })
}
