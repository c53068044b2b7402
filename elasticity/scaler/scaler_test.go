package scaler

import (
	"maps"
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// pooledView has a pool of nodes with four devices, of which so many are there, and devices besides.
func pooledView(nodes, least, most, besides int) *core.View {
	c := &core.Cluster{Accelerators: []string{"t4"}}
	c.Pools = []core.Pool{{Name: "other", Devices: 8, Max: 1}, {Name: "p", Devices: 4, Min: least, Max: most}}
	for range nodes {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(len(c.Nodes)), Devices: 4, Pool: "p"})
	}
	if besides > 0 {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(len(c.Nodes)), Devices: besides})
	}
	return &core.View{Cluster: c, Devices: c.UsableDevices()}
}

// flat are rates that stay as they are from a number of devices on, and grow in proportion before.
func flat(from, most int, left float64) *core.Response {
	r := &core.Response{MinReplicas: 1, MaxReplicas: most, RemainingWork: left, Curves: make([]core.Curve, 1)}
	for k := 1; k <= most; k++ {
		r.Curves[0].OneNode = append(r.Curves[0].OneNode, float64(min(k, from)))
	}
	r.Curves[0].ManyNodes = r.Curves[0].OneNode
	return r
}

// slowing are rates that grow by ever less: one of k devices yields 21/(20+k) of one alone.
func slowing(most int) *core.Response {
	r := flat(most, most, 1)
	for i := range r.Curves[0].OneNode {
		r.Curves[0].OneNode[i] = 21 * float64(i+1) / float64(20+i+1)
	}
	return r
}

// lasting is the same of a job that is far from done.
func lasting(r *core.Response) *core.Response {
	r.RemainingWork = 1e9
	return r
}

// unknowns is a job of which nothing is known.
func unknowns(replicas int) *core.Response {
	return &core.Response{MinReplicas: replicas, MaxReplicas: replicas, RemainingWork: math.NaN()}
}

// noneBelow is the same of a job that has no rate on fewer devices, and none known alone.
func noneBelow(replicas int, r *core.Response) *core.Response {
	clear(r.Curves[0].OneNode[:replicas-1])
	return r
}

// bound is a job that is slow on several nodes, and runs on so many devices of one, or half as many more.
func bound(devices int) *core.Response {
	r := flat(devices, devices+devices/2, 1)
	r.Curves[0].ManyNodes = make([]float64, len(r.Curves[0].OneNode))
	for i := range r.Curves[0].ManyNodes {
		r.Curves[0].ManyNodes[i] = float64(i+1) / 2
	}
	return r
}

// dead is a job whose curve has no rates.
func dead(replicas int) *core.Response {
	r := flat(64, 64, 1)
	clear(r.Curves[0].OneNode)
	r.MinReplicas = replicas
	return r
}

// twice is the same of a job that is twice as fast, and runs on two devices at least.
func twice(r *core.Response) *core.Response {
	for i := range r.Curves[0].OneNode {
		r.Curves[0].OneNode[i] *= 2
	}
	r.MinReplicas = 2
	return r
}

func TestScalers(t *testing.T) {
	unknown := &core.Response{MinReplicas: 3, MaxReplicas: 3, RemainingWork: math.NaN()}
	for name, tc := range map[string]struct {
		factory func() core.Factory[core.ClusterScaler]
		config  map[string]any
		view    *core.View
		jobs    []*core.Response
		want    int // nodes; -1 for no opinion
	}{
		"goodput: a device yields all: grows while it gets faster": {NewGoodput, nil, pooledView(1, 1, 8, 0), []*core.Response{flat(8, 64, 1)}, 2},
		"goodput: to where a device yields half":                   {NewGoodput, nil, pooledView(1, 1, 8, 0), []*core.Response{slowing(64)}, 6},
		"goodput: the most is not enough":                          {NewGoodput, nil, pooledView(1, 1, 3, 0), []*core.Response{flat(64, 64, 1)}, 3},
		"goodput: a device yields little: stays":                   {NewGoodput, nil, pooledView(4, 1, 8, 0), []*core.Response{flat(8, 64, 1)}, 4},
		"goodput: never shrinks with jobs":                         {NewGoodput, nil, pooledView(8, 1, 8, 0), []*core.Response{flat(4, 64, 1)}, 8},
		"goodput: no jobs":                                         {NewGoodput, nil, pooledView(5, 2, 8, 0), nil, 2},
		"goodput: none yet":                                        {NewGoodput, nil, pooledView(0, 0, 8, 0), []*core.Response{flat(8, 64, 1)}, 2},
		"goodput: two jobs yield as much as they do together":      {NewGoodput, nil, pooledView(1, 1, 8, 0), []*core.Response{flat(8, 64, 1), flat(8, 64, 1)}, 4},
		"goodput: devices besides count":                           {NewGoodput, nil, pooledView(1, 1, 8, 12), []*core.Response{flat(8, 64, 1)}, 1},
		"goodput: nothing is known of a job":                       {NewGoodput, nil, pooledView(0, 0, 8, 0), []*core.Response{unknown}, 1},
		"goodput: the least number is more than there is":          {NewGoodput, nil, pooledView(1, 1, 8, 0), []*core.Response{noneBelow(10, lasting(slowing(64)))}, 3},
		"goodput: more than there can be":                          {NewGoodput, nil, pooledView(1, 1, 2, 0), []*core.Response{noneBelow(10, lasting(slowing(64)))}, 1},
		"throughput: the least number is more than there is":       {NewThroughput, nil, pooledView(1, 1, 8, 0), []*core.Response{noneBelow(10, lasting(slowing(64)))}, 3},
		"throughput: none, and it takes two":                       {NewThroughput, nil, pooledView(0, 0, 8, 0), []*core.Response{noneBelow(5, lasting(slowing(64)))}, 2},
		"throughput: more than there can be":                       {NewThroughput, nil, pooledView(1, 1, 2, 0), []*core.Response{noneBelow(10, lasting(slowing(64)))}, 1},
		"marginal: time is worth nothing": {
			NewMarginal,
			map[string]any{"value_of_time": 0.0},
			pooledView(4, 1, 8, 0),
			[]*core.Response{flat(6, 64, 1e9)},
			1,
		},
		"marginal: as long as devices yield all, time decides": {
			NewMarginal,
			map[string]any{"value_of_time": 1.0},
			pooledView(1, 1, 8, 0),
			[]*core.Response{flat(20, 64, 1e9)},
			5,
		},
		"marginal: it is nearly done": {
			NewMarginal,
			map[string]any{"value_of_time": 1.0},
			pooledView(1, 1, 8, 0),
			[]*core.Response{flat(20, 64, 10)},
			1,
		},
		"marginal: an hour is one of each job": {
			NewMarginal,
			map[string]any{"value_of_time": 1.1},
			pooledView(1, 1, 8, 0),
			[]*core.Response{lasting(slowing(64)), lasting(slowing(64))},
			5, // of one job alone, or with the value of one, 3
		},
		"goodput: larger nodes besides":                  {NewGoodput, nil, pooledView(1, 1, 8, 8), []*core.Response{flat(24, 64, 1)}, 4},
		"goodput: there is no pool":                      {NewGoodput, map[string]any{"pool": ""}, &core.View{Cluster: &core.Cluster{}}, []*core.Response{flat(8, 64, 1)}, -1},
		"goodput: a job that can run nowhere":            {NewGoodput, nil, pooledView(1, 1, 8, 0), []*core.Response{dead(4)}, 1},
		"goodput: one that does not run on one device":   {NewGoodput, nil, pooledView(1, 1, 8, 0), []*core.Response{noneBelow(2, flat(8, 64, 1))}, 2},
		"marginal: two of which nothing is known":        {NewMarginal, map[string]any{"value_of_time": 0.0}, pooledView(0, 0, 8, 0), []*core.Response{unknowns(4), unknowns(4)}, 1},
		"marginal: it is worth a pause":                  {NewMarginal, map[string]any{"value_of_time": 1.0}, pooledView(1, 1, 8, 0), []*core.Response{twice(flat(20, 64, 400))}, 5},
		"marginal: it is not":                            {NewMarginal, map[string]any{"value_of_time": 1.0}, pooledView(1, 1, 8, 0), []*core.Response{twice(flat(20, 64, 320))}, 1},
		"marginal: nobody knows what is left":            {NewMarginal, map[string]any{"value_of_time": 1.0, "pause": "15m"}, pooledView(1, 1, 8, 0), []*core.Response{flat(20, 64, math.NaN())}, 1},
		"marginal: it does not run on its least number":  {NewMarginal, map[string]any{"value_of_time": 1.0}, pooledView(1, 1, 8, 0), []*core.Response{noneBelow(2, flat(20, 64, 1e9))}, 5},
		"goodput: speed-ups are over one device":         {NewGoodput, nil, pooledView(1, 1, 8, 0), []*core.Response{twice(slowing(64))}, 6},
		"throughput: it fits on the larger node besides": {NewThroughput, nil, pooledView(0, 0, 8, 8), []*core.Response{bound(8)}, 0},
		"queue: exactly a node":                          {NewQueue, nil, pooledView(0, 0, 8, 0), []*core.Response{unknown, flat(2, 4, 1)}, 1},
		"throughput: a job that can run nowhere":         {NewThroughput, nil, pooledView(0, 0, 8, 0), []*core.Response{dead(1)}, 0},
		"throughput: larger nodes besides":               {NewThroughput, map[string]any{"threshold": 0.7}, pooledView(1, 1, 8, 8), []*core.Response{flat(15, 64, 1)}, 2},
		"marginal: no jobs":                              {NewMarginal, nil, pooledView(5, 2, 8, 0), nil, 2},
		"marginal: none yet": {
			NewMarginal,
			map[string]any{"value_of_time": 1.0},
			pooledView(0, 0, 8, 0),
			[]*core.Response{flat(20, 64, 1e9)},
			5,
		},
		"queue: the least of all jobs, in whole nodes": {
			NewQueue,
			nil, pooledView(0, 0, 8, 0),
			[]*core.Response{unknown, flat(2, 4, 1), flat(2, 4, 1)},
			2,
		},
		"queue: less what there is besides": {
			NewQueue,
			nil, pooledView(3, 0, 8, 5),
			[]*core.Response{unknown, unknown},
			1,
		},
		"queue: no more than the most": {
			NewQueue,
			nil, pooledView(0, 0, 1, 0),
			[]*core.Response{unknown, unknown},
			1,
		},
		"throughput: a node more adds enough":       {NewThroughput, nil, pooledView(1, 1, 8, 0), []*core.Response{flat(8, 64, 1)}, 2},
		"throughput: two more at a time":            {NewThroughput, map[string]any{"spawn": 2}, pooledView(1, 1, 8, 0), []*core.Response{flat(64, 64, 1)}, 3},
		"throughput: it would add nothing: stays":   {NewThroughput, nil, pooledView(2, 1, 8, 0), []*core.Response{flat(8, 64, 1)}, 2},
		"throughput: the last one adds nothing":     {NewThroughput, nil, pooledView(4, 1, 8, 0), []*core.Response{flat(8, 64, 1)}, 3},
		"throughput: not below the least":           {NewThroughput, nil, pooledView(4, 4, 8, 0), []*core.Response{flat(8, 64, 1)}, 4},
		"throughput: it adds half of the average":   {NewThroughput, map[string]any{"threshold": 0.5}, pooledView(1, 1, 8, 0), []*core.Response{flat(6, 64, 1)}, 1},
		"throughput: that is more than 0.4":         {NewThroughput, map[string]any{"threshold": 0.4}, pooledView(1, 1, 8, 0), []*core.Response{flat(6, 64, 1)}, 2},
		"throughput: no jobs":                       {NewThroughput, nil, pooledView(5, 2, 8, 0), nil, 2},
		"throughput: none yet":                      {NewThroughput, nil, pooledView(0, 0, 8, 0), []*core.Response{flat(8, 64, 1)}, 1},
		"throughput: devices besides do all of it":  {NewThroughput, nil, pooledView(2, 0, 8, 8), []*core.Response{flat(8, 64, 1)}, 1},
		"throughput: nodes without rates are taken": {NewThroughput, nil, pooledView(0, 0, 8, 0), []*core.Response{unknown}, 1},
		"queue: no jobs":                            {NewQueue, nil, pooledView(3, 1, 8, 0), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			raw := map[string]any{"pool": "p"}
			maps.Copy(raw, tc.config)
			f := tc.factory()
			config, problems := f.Decode(raw)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			scaler, err := f.New(config, core.Settings{ID: "scaler"})
			if err != nil {
				t.Fatal(err)
			}
			plan := &core.Plan{}
			for i, r := range tc.jobs {
				plan.Candidates = append(plan.Candidates, core.Candidate{Job: &core.Job{JobSpec: &core.JobSpec{ID: core.JobID(i)}}, Response: r})
			}
			for range 2 { // it remembers nothing
				got, err := scaler.Scale(t.Context(), tc.view, plan)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case tc.want == -1 && len(got.Pools) > 0:
					t.Errorf("wants %+v, want no opinion", got)
				case tc.want >= 0 && (len(got.Pools) != 1 || got.Pools[0].Nodes != tc.want || got.Pools[0].Pool != "p" || got.Pools[0].Message == ""):
					t.Errorf("wants %+v, want %d nodes of p, and why", got, tc.want)
				}
			}
		})
	}
}

// What marginal says of its choice are the costs that it compares.
func TestMarginalTells(t *testing.T) {
	config, _ := NewMarginal().Decode(map[string]any{"pool": "p", "value_of_time": 1.1})
	scaler, err := NewMarginal().New(config, core.Settings{ID: "scaler"})
	if err != nil {
		t.Fatal(err)
	}
	job := func(id core.JobID) core.Candidate {
		return core.Candidate{Job: &core.Job{JobSpec: &core.JobSpec{ID: id}}, Response: lasting(slowing(64))}
	}
	got, err := scaler.Scale(t.Context(), pooledView(1, 1, 8, 0), &core.Plan{Candidates: []core.Candidate{job(0), job(1)}})
	if err != nil {
		t.Fatal(err)
	}
	// Two jobs on two devices each are 2 × 42/22 times as fast as one device, on ten 2 × 210/30 times: 3.2/3.82 and 7.2/14.
	const want = "1 nodes cost 0.84 node hours for each hour of one device, 5 nodes 0.51"
	if len(got.Pools) != 1 || got.Pools[0].Message != want {
		t.Errorf("%+v, want %q", got.Pools, want)
	}
}

// A pool that there is not is told, and where there are no pools there is nothing to size.
func TestScalersOfUnknownPools(t *testing.T) {
	for _, f := range []core.Factory[core.ClusterScaler]{NewGoodput(), NewThroughput(), NewMarginal(), NewQueue()} {
		config, problems := f.Decode(map[string]any{"pool": "nobody's"})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		scaler, err := f.New(config, core.Settings{ID: "scaler"})
		if err != nil {
			t.Fatal(err)
		}
		const want = `pool: unknown pool "nobody's"; valid pools: other, p`
		if _, err := scaler.Scale(t.Context(), pooledView(1, 1, 8, 0), &core.Plan{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", f.Type, err, want)
		}
		none := &core.View{Cluster: &core.Cluster{}}
		if got, err := scaler.Scale(t.Context(), none, &core.Plan{}); err != nil || len(got.Pools) > 0 || got.Nodes > 0 {
			t.Errorf("%s: %+v, %v where there are no pools", f.Type, got, err)
		}
	}
}
