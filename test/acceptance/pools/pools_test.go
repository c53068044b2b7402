package pools_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/doortest"
)

const pooled = `version: 1
name: pooled
cluster:
  nodes: [{name: fixed, accelerator: t4, devices: 4}]
  pools: [{name: p, accelerator: t4, devices: 4, start: 1, min: 1, max: 3, price_per_hour: 1}]
workload: {type: generated, config: {jobs: 20, span: 2h}}
round: {interval: 60s}
pipeline:
  allocation: {type: fifo}
  elasticity: {cluster: {type: fixed_number}}
backend: {type: simulator}
output: {write: []}
`

// fixedNumber is a scaler that wants one number of nodes after the other, in turns.
type fixedNumber struct {
	wants []int
	asked int
}

func (f *fixedNumber) Scale(context.Context, *core.View, *core.Plan) (core.ClusterTarget, error) {
	f.asked++
	return core.ClusterTarget{Nodes: f.wants[f.asked%len(f.wants)]}, nil
}

func composePooled(t *testing.T, pools string, wants ...int) *quartet.Composition {
	t.Helper()
	scaler := quartet.Given[core.ClusterScaler]("fixed_number", &fixedNumber{wants: wants})
	c, err := quartet.Parse(quartet.Builtins().WithScaler(scaler), "pooled.yaml", strings.Replace(pooled, "price_per_hour: 1}", "price_per_hour: 1}"+pools, 1), quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// That a scaler wants more nodes than a pool may have, or fewer, is noted once.
func TestCutsAreNoted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pools string // besides
		wants []int
		want  []string
	}{
		"within the bounds": {wants: []int{3}},
		"too many":          {wants: []int{7, 9}, want: []string{`scaler/fixed_number wants 8 nodes of pool "p", which has 1 to 3: it is held to these bounds`}},
		"of several pools":  {pools: ", {name: q, accelerator: t4, devices: 4, max: 3}", wants: []int{2, 3}, want: []string{"scaler/fixed_number wants 3 nodes in all, and there are several pools: they stay as they are, for a scaler must say how many nodes each gets"}},
		"too few":           {wants: []int{1}, want: []string{`scaler/fixed_number wants 0 nodes of pool "p", which has 1 to 3: it is held to these bounds`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := composePooled(t, tc.pools, tc.wants...)
			var got []string
			c.Note = func(text string) {
				if strings.HasPrefix(text, "scaler/fixed_number wants") {
					got = append(got, text)
				}
			}
			if r := doortest.Simulate(t, c); r.Summary.Rounds < 2 {
				t.Fatal("it is asked once only")
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("noted %q, want %q", got, tc.want)
			}
		})
	}
}

// A run that holds no round has a bill of nothing.
func TestBillOfNoRound(t *testing.T) {
	t.Parallel()
	c := composePooled(t, "", 2)
	c.Jobs = &workload.Workload{}
	s := doortest.Simulate(t, c).Summary
	if s.Rounds != 0 {
		t.Fatalf("%d rounds: the test shows nothing", s.Rounds)
	}
	if s.Bill == nil || s.Bill.Cost != 0 || s.Bill.NodeHours != 0 || len(s.Pools) != 1 || s.Pools[0].Cost != 0 {
		t.Errorf("bill %+v, pools %+v, want those of nothing", s.Bill, s.Pools)
	}
}

// Pools that nobody sizes are told, and others are not.
func TestPoolsThatNobodySizes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, new string
		want     []string
	}{
		"a scaler": {},
		"none":     {"elasticity: {cluster: {type: fixed_number}}", "elasticity: {cluster: {type: none}}", []string{"pooled.yaml:5:3: cluster.pools: no policy sizes the pools: they begin with start nodes, and get others only where they would have fewer than min; set pipeline.elasticity.cluster"}},
		"left out": {"elasticity: {cluster: {type: fixed_number}}", "", []string{"pooled.yaml:5:3: cluster.pools: no policy sizes the pools: they begin with start nodes, and get others only where they would have fewer than min; set pipeline.elasticity.cluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scaler := quartet.Given[core.ClusterScaler]("fixed_number", &fixedNumber{wants: []int{2}})
			c, err := quartet.Parse(quartet.Builtins().WithScaler(scaler), "pooled.yaml", strings.Replace(pooled, tc.old, tc.new, 1), quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			c.Note = func(text string) {
				if strings.Contains(text, "pools") {
					got = append(got, text)
				}
			}
			doortest.Simulate(t, c)
			if !slices.Equal(got, tc.want) {
				t.Errorf("noted %q, want %q", got, tc.want)
			}
		})
	}
}
