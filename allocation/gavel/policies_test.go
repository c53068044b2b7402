package gavel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// task is a job of a problem in short: what is left out is 1, but for the submission and the accounts, which are 0.
type task struct {
	devices                             int
	weight, remaining, submit, attained float64
	tenant                              string
	rates                               []float64
	had                                 []float64 // shares before
}

func newProblem(capacity []float64, tasks ...task) *problem {
	p := &problem{capacity: capacity, now: 100}
	for _, w := range capacity {
		p.devices += w
	}
	for i, t := range tasks {
		m := &member{
			id: core.JobID(i), tenant: t.tenant, weight: t.weight, submit: t.submit, devices: max(t.devices, 1), remaining: t.remaining,
			attained: t.attained, rates: make([]float64, len(t.rates)), x: make([]float64, len(capacity)), shared: t.had != nil,
		}
		if m.weight == 0 {
			m.weight = 1
		}
		if m.remaining == 0 {
			m.remaining = 1
		}
		m.scale(t.rates)
		copy(m.x, t.had)
		p.jobs = append(p.jobs, m)
	}
	return p
}

// shares renders the shares of all jobs, a row each.
func (p *problem) shares() []string {
	rows := make([]string, len(p.jobs))
	for i, m := range p.jobs {
		cells := make([]string, len(m.x))
		for t, x := range m.x {
			cells[t] = fmt.Sprintf("%.3f", x)
		}
		rows[i] = strings.Join(cells, " ")
	}
	return rows
}

func TestPolicies(t *testing.T) {
	// A job that gains ten times on the fast type, and one that gains twice.
	keen, dull := []float64{10, 1}, []float64{2, 1}
	cases := map[string]struct {
		policy policy
		p      *problem
		want   []string
	}{
		// Each on its best type reaches 4/2.5 and 2/1.5 of its equal share; more than 2/1.5 there is not, which 5/6
		// of the time is enough for.
		"max-min takes no more than it needs": {
			new(maxMin), newProblem([]float64{1, 1}, task{rates: []float64{4, 1}}, task{rates: []float64{1, 2}}), []string{"0.833 0.000", "0.000 1.000"},
		},
		// The same, and the first takes the rest of its type.
		"max-min divides the rest": {
			&maxMin{spare: true}, newProblem([]float64{1, 1}, task{rates: []float64{4, 1}}, task{rates: []float64{1, 2}}), []string{"1.000 0.000", "0.000 1.000"},
		},
		// Weight 3 against 1 on a single device.
		"max-min by weight": {new(maxMin), newProblem([]float64{1}, task{rates: []float64{4}, weight: 3}, task{rates: []float64{7}}), []string{"0.750", "0.250"}},
		// A job of two devices gets half the time of a job of one, on two devices: 2 x + 2x = 2.
		"max-min by devices": {new(maxMin), newProblem([]float64{2}, task{rates: []float64{1}, devices: 2}, task{rates: []float64{1}}, task{rates: []float64{1}}), []string{"0.333", "0.667", "0.667"}},
		"isolated":           {isolated{}, newProblem([]float64{2, 4}, task{rates: keen}, task{rates: dull, devices: 2}), []string{"0.333 0.667", "0.333 0.667"}},
		// 20 steps a second for the keen one beat 2 and 1.
		"max-sum": {new(maxSum), newProblem([]float64{1, 1}, task{rates: dull}, task{rates: keen}), []string{"0.000 1.000", "1.000 0.000"}},
		// The dull job loses half of its best on the slow type, the keen one nine tenths.
		"best normalised sum": {new(bestNormalisedSum), newProblem([]float64{1, 1}, task{rates: []float64{200, 100}}, task{rates: keen}), []string{"0.000 1.000", "1.000 0.000"}},
		"best normalised sum prefers the job with less service": {
			new(bestNormalisedSum), newProblem([]float64{1}, task{rates: []float64{3}, attained: 7200}, task{rates: []float64{5}}), []string{"0.000", "1.000"},
		},
		"best normalised sum keeps a floor": {
			&bestNormalisedSum{floor: 0.5}, newProblem([]float64{1}, task{rates: []float64{3}, attained: 7200}, task{rates: []float64{5}}), []string{"0.250", "0.750"},
		},
		// No shares hold twice the fairest: these it is then.
		"best normalised sum under a floor that cannot be held": {
			&bestNormalisedSum{floor: 2}, newProblem([]float64{1}, task{rates: []float64{3}, weight: 3}, task{rates: []float64{5}}), []string{"0.750", "0.250"},
		},
		// Work 30 and 10 on one device: both end at 40/speed if they have 3/4 and 1/4 of it.
		"makespan": {new(makespan), newProblem([]float64{1}, task{rates: []float64{1}, remaining: 30}, task{rates: []float64{1}, remaining: 10}), []string{"0.750", "0.250"}},
		// 0 for a job of unknown work: it is asked to do nothing.
		"makespan without work": {new(makespan), newProblem([]float64{1}, task{rates: []float64{1}, remaining: math.NaN()}, task{rates: []float64{1}, remaining: 10}), []string{"0.000", "1.000"}},
		// Submitted 100 and 0 s ago, each with 100 s of work in half of the device: (100 + 50/x)/100 = (50/(1-x))/100.
		"finish-time fairness": {
			&finishTimes{}, newProblem([]float64{1}, task{rates: []float64{1}, remaining: 50}, task{rates: []float64{1}, remaining: 50, submit: 100}), []string{"0.707", "0.293"},
		},
		// Each takes the fastest type with room; the third would fit nowhere and holds up the fourth.
		"fifo_perf": {
			&fifoPerf{}, newProblem([]float64{1, 2}, task{rates: keen}, task{rates: keen}, task{rates: keen, devices: 2}, task{rates: keen}),
			[]string{"1.000 0.000", "0.000 1.000", "0.000 0.000", "0.000 0.000"},
		},
		// There is room for the first on the second type, where it cannot run: it holds up nobody.
		"fifo_perf passes a job that cannot run": {
			&fifoPerf{}, newProblem([]float64{1, 2}, task{rates: []float64{3, 0}, devices: 2}, task{rates: keen}), []string{"0.000 0.000", "1.000 0.000"},
		},
		"fifo stays": {
			&fifoPerf{stay: true, rand: rand.New(rand.NewPCG(1, 1))},
			newProblem([]float64{1, 1}, task{rates: keen, had: []float64{0, 1}}, task{rates: dull}),
			[]string{"0.000 1.000", "1.000 0.000"},
		},
		// Work 5 and 1 on one device: the short one first, for 1 + 6 is less than 5 + 6.
		"allox runs the shortest first": {new(alloX), newProblem([]float64{1}, task{rates: []float64{1}, remaining: 5}, task{rates: []float64{1}}), []string{"0.000", "1.000"}},
		"allox keeps what runs":         {new(alloX), newProblem([]float64{1}, task{rates: []float64{1}, remaining: 5, had: []float64{1}}, task{rates: []float64{1}}), []string{"1.000", "0.000"}},
		// Alone each would take the fast type. 10 s there and 5 s on the slow one beat 10 s and twice 10/3 s, as the
		// other one waits.
		"allox gives the fast type to the keen": {new(alloX), newProblem([]float64{1, 1}, task{rates: []float64{3, 2}, remaining: 10}, task{rates: keen, remaining: 100}), []string{"0.000 1.000", "1.000 0.000"}},
		// A device of two broke: of those that have the type for themselves, the first keeps it.
		"allox keeps no more than there is": {
			new(alloX), newProblem([]float64{1}, task{rates: []float64{1}, remaining: 5, had: []float64{1}}, task{rates: []float64{1}, had: []float64{1}}), []string{"1.000", "0.000"},
		},
		"fifo keeps no more than there is": {
			&fifoPerf{stay: true, rand: rand.New(rand.NewPCG(1, 1))},
			newProblem([]float64{1, 0}, task{rates: keen, had: []float64{1, 0}}, task{rates: keen, had: []float64{1, 0}}),
			[]string{"1.000 0.000", "0.000 0.000"},
		},
		// The first job can use half of the time; the others share what it leaves.
		"water-filling": {
			new(waterFilling), newProblem([]float64{1, 1}, task{rates: []float64{1, 0}}, task{rates: []float64{1, 0}}, task{rates: []float64{0, 1}}),
			[]string{"0.500 0.000", "0.500 0.000", "0.000 1.000"},
		},
		// Tenant a has twice the weight of b, whose first job comes before its second.
		"water-filling for tenants": {
			&waterFilling{tenants: []Tenant{{Name: "a", Weight: 2}, {Name: "b", Weight: 1, Inside: fifo}}},
			newProblem([]float64{1}, task{tenant: "a", rates: []float64{1}}, task{tenant: "a", rates: []float64{1}}, task{tenant: "b", rates: []float64{1}}, task{tenant: "b", rates: []float64{1}}),
			[]string{"0.333", "0.333", "0.333", "0.000"},
		},
		"water-filling for a tenant of default weight": {
			&waterFilling{tenants: []Tenant{{Name: "a"}, {Name: "b", Weight: 3}}},
			newProblem([]float64{1}, task{tenant: "a", rates: []float64{1}}, task{tenant: "b", rates: []float64{1}}),
			[]string{"0.250", "0.750"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.policy.divide(t.Context(), tc.p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.p.shares()); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}

// Decisions at size: what starts is the front of queues that cost no more than matching jobs to ranks does, each on a
// device.
func TestAlloXMatchesAtTheLeastCost(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		capacity := make([]float64, 1+rng.IntN(6))
		for on := range capacity {
			capacity[on] = float64(rng.IntN(4))
		}
		capacity[0]++
		var tasks []task
		for range 1 + rng.IntN(60) {
			job := task{remaining: 1 + 100*rng.ExpFloat64()}
			for range capacity {
				job.rates = append(job.rates, 1+9*rng.Float64())
			}
			tasks = append(tasks, job)
		}
		p := newProblem(capacity, tasks...)
		var room []int
		costs := make([][]float64, len(tasks))
		work := p.workLeft()
		for on, devices := range capacity {
			for k := range len(tasks) {
				room = append(room, int(devices))
				for i, m := range p.jobs {
					costs[i] = append(costs[i], float64(k+1)*work[i]/m.rates[on])
				}
			}
		}
		want, err := new(optim.Transport).Solve(t.Context(), costs, slices.Repeat([]int{1}, len(tasks)), room)
		if err != nil {
			t.Fatal(err)
		}
		policy := new(alloX)
		if err := policy.divide(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		queues, err := policy.solver.Solve(t.Context(), policy.lengths, counts(capacity))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(queues.Cost-want.Cost) > 1e-9*want.Cost {
			t.Errorf("seed %d: queues of cost %v, want %v", seed, queues.Cost, want.Cost)
		}
		for on, queue := range queues.Order {
			for at, i := range queue {
				if starts := p.jobs[i].x[on] == 1; starts != (at < int(capacity[on])) {
					t.Errorf("seed %d: job %d, at %d in the queue of %v devices, starts: %v", seed, i, at, capacity[on], starts)
				}
			}
		}
	}
}

func counts(capacity []float64) []int {
	whole := make([]int, len(capacity))
	for on, w := range capacity {
		whole[on] = int(w)
	}
	return whole
}

func TestMakespanRefusesWhatItCannotSearchTo(t *testing.T) {
	for tolerance, valid := range map[float64]bool{0: true, 1e-17: false, 0.9e-9: false, leastTolerance: true, 0.05: true} {
		if err := (MakespanConfig{Tolerance: tolerance}).Validate(); (err == nil) != valid {
			t.Errorf("tolerance %v: %v", tolerance, err)
		}
	}
}

// A search that is asked for more than numbers hold ends all the same.
func TestMakespanSearchEnds(t *testing.T) {
	p := newProblem([]float64{1}, task{rates: []float64{1}, remaining: 300}, task{rates: []float64{1}, remaining: 100})
	if err := (&makespan{tolerance: 1e-17}).divide(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0.750", "0.250"}, p.shares()); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}
