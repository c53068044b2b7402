package market

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// optimumStates limits the vectors of used workers that Optimum works through.
const optimumStates = 1 << 17

// ErrTooLarge says that a problem is beyond the exact optimum.
var ErrTooLarge = errors.New("market: too many workers of too many types for the exact optimum")

// Optimum is an assignment of the smallest mean, by dynamic programming over the workers used: O(S·Π
// (N_t+1)(N_t+2)/2) time for S jobs and N_t workers of each type. It fails with ErrTooLarge where Π (N_t+1)
// exceeds 131,072. The same jobs wait as in Place.
func Optimum(ctx context.Context, jobs []Job, workers Workers) (Assignment, error) {
	p, err := newProblem(jobs, workers)
	if err != nil {
		return Assignment{}, err
	}
	p.admit()
	if len(p.agents) == 0 {
		return Assignment{}, ErrNoRoom
	}
	states := 1
	for _, count := range p.count {
		if states *= count + 1; states > optimumStates {
			return Assignment{}, fmt.Errorf("%w: more than %d ways to use them", ErrTooLarge, optimumStates)
		}
	}
	o := newOptimum(p, states)
	if err := o.run(ctx); err != nil {
		return Assignment{}, err
	}
	score, err := equalSizes(ctx, newMatching(p, Options{}), newExchanger(p), 0)
	if err != nil {
		return Assignment{}, err
	}
	out := p.assignment(o.held(), 0, score)
	out.Bound = out.Mean
	return out, nil
}

// An optimum numbers vectors of workers in a mixed radix: stride[t] is what one worker of type t counts. That of the
// last type is largest, so vectors below another in every type are runs of neighbours in the first.
type optimum struct {
	p      *problem
	states int
	stride []int
	value  []float64 // least sum of the agents so far with at most these workers
	next   []float64 // the same with one agent more
	cost   []float64 // of the agent at hand, by what it holds; +Inf where it must not
	chosen [][]int32 // what each agent holds, by the workers left to it and those before it
}

func newOptimum(p *problem, states int) *optimum {
	o := &optimum{p: p, states: states, value: make([]float64, states), next: make([]float64, states), cost: make([]float64, states)}
	stride := 1
	for _, count := range p.count {
		o.stride = append(o.stride, stride)
		stride *= count + 1
	}
	return o
}

func (o *optimum) run(ctx context.Context) error {
	most, at := make([]int, len(o.stride)), make([]int, len(o.stride))
	for i := range o.p.agents {
		o.price(&o.p.agents[i])
		chosen := make([]int32, o.states)
		first := 0
		if i == len(o.p.agents)-1 {
			first = o.states - 1 // only the answer is asked for
		}
		for state := first; state < o.states; state++ {
			if state%64 == 0 && ctx.Err() != nil {
				return fmt.Errorf("market: optimum: %w", ctx.Err())
			}
			o.digits(state, most)
			best, held := o.choose(state, most, at)
			o.next[state], chosen[state] = best, int32(held)
		}
		o.value, o.next = o.next, o.value
		o.chosen = append(o.chosen, chosen)
	}
	return nil
}

// price fills in the cost of an agent.
func (o *optimum) price(a *agent) {
	held := make([]int, len(o.stride))
	for state := range o.cost {
		o.digits(state, held)
		speed, size := 0.0, 0
		able := true
		for t, n := range held {
			speed, size = speed+a.rate[t]*float64(n), size+n
			able = able && (n == 0 || a.rate[t] > 0)
		}
		o.cost[state] = math.Inf(1)
		if able && size >= a.least && size <= a.most {
			o.cost[state] = a.seconds(speed, size) + a.moves(held)
		}
	}
}

// choose finds what the agent at hand best holds of at most so many workers.
func (o *optimum) choose(state int, most, at []int) (best float64, held int) {
	best = math.Inf(1)
	clear(at)
	for base := 0; ; {
		cost := o.cost[base : base+most[0]+1]
		value := o.value[state-base-most[0] : state-base+1]
		for n, c := range cost {
			if sum := value[len(value)-1-n] + c; sum < best {
				best, held = sum, base+n
			}
		}
		t := 1
		for ; t < len(at); t++ {
			base += o.stride[t]
			if at[t]++; at[t] <= most[t] {
				break
			}
			base -= at[t] * o.stride[t]
			at[t] = 0
		}
		if t >= len(at) {
			return best, held
		}
	}
}

func (o *optimum) digits(state int, into []int) {
	for t, stride := range o.stride {
		into[t] = state / stride % (o.p.count[t] + 1)
	}
}

// held walks back from the answer.
func (o *optimum) held() [][]int {
	out := table(len(o.p.agents), len(o.stride))
	state := o.states - 1
	for i, row := range slices.Backward(out) {
		held := int(o.chosen[i][state])
		o.digits(held, row)
		state -= held
	}
	return out
}
