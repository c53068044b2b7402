package matching

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/restart"
)

func TestArrivalsAreCounted(t *testing.T) {
	here := func(ids ...core.JobID) (candidates []core.Candidate) {
		for _, id := range ids {
			candidates = append(candidates, core.Candidate{Job: coretest.MakeJob("j").ID(id).Obj()})
		}
		return candidates
	}
	var a arrivals
	for i, round := range []struct {
		now  float64
		here []core.Candidate
		want float64
	}{
		{100, here(0), math.Inf(1)},
		{130, here(0), 30},
		{160, here(0, 1, 2), 20}, // three in 60 s
		{220, here(1), 40},       // those that end count for nothing
		{260, nil, 160. / 3},
		{300, here(3), 50},
		{301, here(3), 201. / 4},
	} {
		a.observe(round.now, round.here)
		if got := a.apart(); got != round.want {
			t.Errorf("round %d: %v s apart, want %v", i, got, round.want)
		}
	}
}

// A job of a thousand seconds gains little by a faster device: enough over its life, too little until the next job comes.
func TestMovesPayUntilTheNextArrival(t *testing.T) {
	left := map[string]float64{"old": 1000}
	alone := map[string][]float64{"old": {1, 1.1}}
	for name, tc := range map[string]struct {
		pay   string
		every float64
		want  []int
	}{
		"over its life":                 {string(restart.Life), 50, []int{0, 1}},
		"jobs come often":               {string(restart.Arrival), 50, []int{1, 0}},
		"jobs come twice in its life":   {string(restart.Arrival), 500, []int{0, 1}},
		"none comes as long as it runs": {string(restart.Arrival), 5000, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(smallCluster()).Now(tc.every).Jobs(coretest.MakeJob("old").Elastic(1, 1, 1).MixesTypes().Running(0, coretest.Seat(0, 0))).Obj()
			config := Default
			config.MovesPay = tc.pay
			p := &allocator{config: config, rand: core.NewRand(1, "allocation/matching")}
			p.arrivals = arrivals{begun: true, last: -1}
			grants, err := p.Allocate(t.Context(), v, coretest.Candidates(v, respond(1, left, alone)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string][]int{"old": tc.want}, seatsOf(v, grants)); diff != "" {
				t.Errorf("devices by type (-want +got):\n%s", diff)
			}
		})
	}
}
