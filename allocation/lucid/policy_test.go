package lucid

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// turns is a view at 1000 s of two nodes with four devices each, of 16 GB, that two jobs may be on.
func turns(jobs ...*coretest.JobBuilder) *core.View {
	return coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(2, 16).Obj()).Now(1000).Jobs(jobs...).Obj()
}

func TestLucid(t *testing.T) {
	on := func(node core.NodeID, replicas int) *coretest.JobBuilder {
		return coretest.MakeJob("r").Replicas(replicas).Work(5000).Utilisation(0.4).Running(900, core.Seat{Node: node, Devices: core.FirstDevices(replicas)})
	}
	full := on(1, 4) // a node without partners
	full.Utilisation(0)
	waiting := func(replicas int, seconds, utilisation float64) *coretest.JobBuilder {
		return policytest.Waits(replicas).Work(seconds).Utilisation(utilisation)
	}
	type jobs = []*coretest.JobBuilder
	cases := map[string]struct {
		config map[string]any
		jobs   jobs
		want   string
	}{
		"shortest first by time times devices":           {nil, jobs{waiting(2, 400, 0.4), waiting(1, 500, 0.4), waiting(4, 300, 0.4)}, "1×1 0×2 2×4"},
		"devices of its own while there are":             {nil, jobs{on(0, 4), waiting(4, 400, 0.4)}, "0×4 1×4"},
		"beside a partner where devices are free":        {map[string]any{"pack": packFirst}, jobs{on(0, 4), waiting(4, 400, 0.4)}, "0+1×4"},
		"packed when none are left":                      {nil, jobs{on(0, 4), full, waiting(4, 400, 0.4)}, "0+2×4 1×4"},
		"not with sharing off, and those behind wait":    {map[string]any{"sharing": false}, jobs{on(0, 4), on(1, 3), waiting(4, 40, 0.4), waiting(1, 400, 0.4)}, "0×4 1×3 2×4|"},
		"not with sharing off, and those behind pass":    {map[string]any{"sharing": false, "queue": "backfill"}, jobs{on(0, 4), on(1, 3), waiting(4, 40, 0.4), waiting(1, 400, 0.4)}, "0×4 1×3 3×1"},
		"those behind pass while jobs are packed":        {nil, jobs{on(0, 4).Utilisation(0), on(1, 3), waiting(4, 40, 0.4), waiting(1, 400, 0.4)}, "0×4 1×3 3×1"},
		"the first job beside a later one":               {nil, jobs{waiting(4, 400, 0.4), on(0, 4), full}, "1+0×4 2×4"},
		"as many devices only":                           {nil, jobs{on(0, 4), full, waiting(3, 400, 0.4)}, "0×4 1×4"},
		"the first that started":                         {nil, jobs{on(0, 4), on(1, 4).Running(800, core.Seat{Node: 1, Devices: 15}), waiting(4, 400, 0.4)}, "1+2×4 0×4"},
		"each its own partner, and no third":             {nil, jobs{on(0, 4), on(1, 4), waiting(4, 400, 0.4), waiting(4, 500, 0.4), waiting(4, 600, 0.4)}, "0+2×4 1+3×4"},
		"those that run together stay, and take nobody":  {nil, jobs{on(0, 4), on(0, 4), full, waiting(4, 400, 0.4)}, "0+1×4 2×4"},
		"the fit predicts no loss up to 0.85":            {nil, jobs{on(0, 4), full, waiting(4, 400, 0.45)}, "0+2×4 1×4"},
		"and some above, which nobody tolerates":         {nil, jobs{on(0, 4), full, waiting(4, 400, 0.46)}, "0×4 1×4"},
		"as much as both tolerate":                       {nil, jobs{on(0, 4).Tolerance(0.0153), full, waiting(4, 400, 0.5).Tolerance(0.0153)}, "0+2×4 1×4"}, // 0.306 × 0.05
		"more than the first tolerates":                  {nil, jobs{on(0, 4).Tolerance(0.0152), full, waiting(4, 400, 0.5).Tolerance(1)}, "0×4 1×4"},
		"more than the second tolerates":                 {nil, jobs{on(0, 4).Tolerance(1), full, waiting(4, 400, 0.5).Tolerance(0.0152)}, "0×4 1×4"},
		"those that tell none tolerate what is set":      {map[string]any{"tolerance": 0.0153}, jobs{on(0, 4), full, waiting(4, 400, 0.5)}, "0+2×4 1×4"},
		"what a job tells goes before what is set":       {map[string]any{"tolerance": 1.0}, jobs{on(0, 4).Tolerance(0.001), full, waiting(4, 400, 0.5)}, "0×4 1×4"},
		"whatever they tolerate":                         {map[string]any{"labels_alone": true}, jobs{on(0, 4).Utilisation(0.84).Tolerance(0.001), full, waiting(4, 400, 0.84)}, "0+2×4 1×4"},
		"labels that are too high even so":               {map[string]any{"labels_alone": true}, jobs{on(0, 4).Utilisation(0.85), full, waiting(4, 400, 0.84)}, "0×4 1×4"},
		"two medium ones by their labels":                {map[string]any{"tolerance": 1.0}, jobs{on(0, 4).Utilisation(0.84), full, waiting(4, 400, 0.84)}, "0+2×4 1×4"},
		"a jumbo and a medium one are too much":          {map[string]any{"tolerance": 1.0}, jobs{on(0, 4).Utilisation(0.841), full, waiting(4, 400, 0.43)}, "0×4 1×4"},
		"a jumbo and a tiny one are not":                 {map[string]any{"tolerance": 1.0}, jobs{on(0, 4).Utilisation(1), full, waiting(4, 400, 0.42)}, "0+2×4 1×4"},
		"unless labels may add up to more":               {map[string]any{"tolerance": 1.0, "label_sum": 4}, jobs{on(0, 4).Utilisation(1), full, waiting(4, 400, 1)}, "0+2×4 1×4"},
		"unknown utilisation beside a known one":         {map[string]any{"tolerance": 1.0}, jobs{on(0, 4), full, waiting(4, 400, 0)}, "0×4 1×4"},
		"known utilisation beside an unknown one":        {map[string]any{"tolerance": 1.0}, jobs{on(0, 4).Utilisation(0), full, waiting(4, 400, 0.1)}, "0×4 1×4"},
		"both fill the memory":                           {nil, jobs{on(0, 4).DeviceMemory(10), full, waiting(4, 400, 0.4).DeviceMemory(6)}, "0+2×4 1×4"},
		"memory is short":                                {nil, jobs{on(0, 4).DeviceMemory(10), full, waiting(4, 400, 0.4).DeviceMemory(6.001)}, "0×4 1×4"},
		"twice as long as its partner":                   {nil, jobs{on(0, 4), full, waiting(4, 10000, 0.4)}, "0+2×4 1×4"},
		"longer":                                         {nil, jobs{on(0, 4), full, waiting(4, 10001, 0.4)}, "0×4 1×4"},
		"of unknown length beside one of known":          {nil, jobs{on(0, 4), full, waiting(4, 0, 0.4)}, "0×4 1×4"},
		"of unknown length both, in order of submission": {nil, jobs{on(0, 4).Work(0), full, waiting(4, 0, 0.4), waiting(4, 0, 0.4)}, "0+2×4 1×4"},
		"larger than may be packed":                      {map[string]any{"largest_packed": 3}, jobs{on(0, 4), full, waiting(4, 400, 0.4)}, "0×4 1×4"},
		"another accelerator type":                       {nil, jobs{on(0, 4), full, waiting(4, 400, 0.4).Accelerators("v100")}, "0×4 1×4"},
		"few jobs: nobody is packed":                     {map[string]any{"off_below": 2.0}, jobs{on(0, 4), on(1, 4), waiting(4, 400, 0.4)}, "0×4 1×4 2×4|"}, // 3 in 1000 s
		"as many as that":                                {map[string]any{"off_below": 1.8}, jobs{on(0, 4), full, waiting(4, 400, 0.4)}, "0+2×4 1×4"},        // 1.8 in ten minutes
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := turns(tc.jobs...)
			if got := policytest.Units(policytest.Ask(t, policytest.New(t, New(), tc.config), v, policytest.Rigid)); got != tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
		})
	}
}

// On a cluster that gives each device to one job, and on one where devices have one owner, nobody is packed.
func TestLucidWithoutTurns(t *testing.T) {
	for name, cluster := range map[string]*core.Cluster{
		"exclusive": coretest.MakeCluster().Nodes(1, "t4", 4).Obj(),
		"one owner": coretest.MakeCluster().Nodes(1, "t4", 4).TakesTurns(1, 0).Obj(),
	} {
		v := coretest.MakeView(cluster).Now(1000).Jobs(
			coretest.MakeJob("r").Replicas(4).Work(100).Utilisation(0.1).Running(900, core.Seat{Devices: 15}), policytest.Waits(4).Work(10).Utilisation(0.1),
		).Obj()
		if got, want := policytest.Units(policytest.Ask(t, policytest.New(t, New(), map[string]any{"queue": "backfill"}), v, policytest.Rigid)), "0×4"; got != want {
			t.Errorf("%s: granted %s, want %s", name, got, want)
		}
	}
}

// A job that was granted devices of its own and did not find them is packed in the next round; when somebody leaves, it is granted
// devices of its own again.
func TestLucidPacksWhoFindsNoDevices(t *testing.T) {
	policy := policytest.New(t, New(), nil)
	half := core.Seat{Node: 0, Devices: 3}
	v := turns(coretest.MakeJob("r").Replicas(2).Work(5000).Utilisation(0.4).Running(900, half), policytest.Waits(2).Work(400).Utilisation(0.4))
	for _, want := range []string{"0×2 1×2", "0+1×2"} {
		got := policytest.Ask(t, policy, v, policytest.Rigid)
		if policytest.Units(got) != want {
			t.Errorf("granted %s, want %s", policytest.Units(got), want)
		}
		if until := policytest.StandsUntil(t, policy, v, got); want == "0×2 1×2" && until != v.NowSeconds {
			t.Errorf("an answer of which a job finds no devices stands until %v", until)
		}
	}
	policytest.Ask(t, policy, v, policytest.Rigid)
	policy = policytest.New(t, New(), nil)
	policytest.Ask(t, policy, v, policytest.Rigid)
	v.Changed = []core.JobID{7}
	if got, want := policytest.Units(policytest.Ask(t, policy, v, policytest.Rigid)), "0×2 1×2"; got != want {
		t.Errorf("after somebody left: granted %s, want %s", got, want)
	}
}

// What was seen of two applications goes before what the fit predicts.
func TestLucidLearns(t *testing.T) {
	seat := core.Seat{Node: 0, Devices: 15}
	job := func(application string, utilisation float64) *coretest.JobBuilder {
		return coretest.MakeJob(application).Application(application).Replicas(4).Work(5000).Utilisation(utilisation).Tolerance(0.1)
	}
	at := func(now float64, jobs ...*coretest.JobBuilder) *core.View {
		v := turns(jobs...)
		v.NowSeconds = now
		return v
	}
	for name, tc := range map[string]struct {
		utilisation, beside float64
		want                string
	}{
		"slower than the fit says":  {0.4, 1.79, "3×4 2×4"},
		"as slow as it tolerates":   {0.4, 1.8, "3×4 2+4×4"},
		"faster than the fit says":  {0.8, 1.9, "3×4 2+4×4"},
		"nothing seen, and no room": {0.8, 0, "3×4 2×4"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, New(), nil)
			first, second := job("a", tc.utilisation), job("b", tc.utilisation)
			second.Tolerance(1)
			policytest.Ask(t, policy, at(900, first.Running(0, seat).Progress(0, 2), second.Waiting()), policytest.Rigid)
			policytest.Ask(t, policy, at(950, first.Progress(100, tc.beside), second.Running(900, seat).Progress(0, 1.5)), policytest.Rigid)
			other := coretest.MakeJob("c").Replicas(4).Running(0, core.Seat{Node: 1, Devices: 15})
			ended := policytest.Waits(1).Work(1)
			v := at(1000, ended, ended, job("a", tc.utilisation).Running(950, seat).Progress(0, 2), other, job("b", tc.utilisation).Tolerance(1).Waiting())
			v.Jobs[0], v.Jobs[1], v.Active = nil, nil, v.Active[2:]
			v.Changed = []core.JobID{0, 1}
			if got := policytest.Units(policytest.Ask(t, policy, v, policytest.Rigid)); got != tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
		})
	}
}

// One that takes over knows how long running jobs were when they were new, and what was seen of applications.
func TestLucidGoesOnFromItsSnapshot(t *testing.T) {
	seat, other := core.Seat{Node: 0, Devices: 15}, core.Seat{Node: 1, Devices: 15}
	host := coretest.MakeJob("r").Application("a").Replicas(4).Work(1000).Utilisation(0.4)
	first := policytest.New(t, New(), nil).(*lucid)
	policytest.Ask(t, first, turns(host.Waiting(), policytest.Waits(4).Work(0)), policytest.Rigid)
	first.beside = map[[2]string]float64{{"b", "a"}: 0.5, {"a", "b"}: 1, {"a", "c"}: 0.5}
	learned, err := first.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Sizes":[{"Job":0,"Size":4000},{"Job":1,"Size":-1}],"Beside":[{"Application":"a","Other":"b","Part":1},{"Application":"a","Other":"c","Part":0.5},{"Application":"b","Other":"a","Part":0.5}],"Recent":[1000,1000],"Alone":null}`
	if string(learned) != want {
		t.Errorf("learned %s, want %s", learned, want)
	}
	for name, tc := range map[string]struct {
		application string
		seconds     float64
		restores    bool
		want        string
	}{
		"twice as long as it was":       {"", 2000, true, "0+2×4 1×4"},
		"of which nobody knows":         {"", 2000, false, "0×4 1×4"},
		"longer than that":              {"", 2001, true, "0×4 1×4"},
		"slow beside it":                {"b", 100, true, "0×4 1×4"},
		"slow beside it, and not known": {"b", 100, false, "0+2×4 1×4"},
	} {
		policy := policytest.New(t, New(), nil).(*lucid)
		if tc.restores {
			if err := policy.Restore(learned); err != nil {
				t.Fatal(err)
			}
		}
		v := turns(host.Running(0, seat).Progress(0, 0.2), coretest.MakeJob("r").Replicas(4).Running(0, other), // which has 800 s to go
			policytest.Waits(4).Application(tc.application).Work(tc.seconds).Utilisation(0.4))
		if got := policytest.Units(policytest.Ask(t, policy, v, policytest.Rigid)); got != tc.want {
			t.Errorf("%s: granted %s, want %s", name, got, tc.want)
		}
	}
	for _, text := range []string{``, `{"Sizes":[{"Job":-1,"Size":1}]}`, `{"Sizes":[{"Job":1,"Size":1},{"Job":1,"Size":1}]}`, `{"Alone":[{"Job":1,"Rate":1,"Replicas":0,"Nodes":1}]}`} {
		if err := policytest.New(t, New(), nil).(core.Snapshotter).Restore([]byte(text)); err == nil {
			t.Errorf("takes up %q", text)
		}
	}
}

// Jobs that have nothing left to do are counted once, whenever they are looked at.
func TestLucidCountsJobsOnce(t *testing.T) {
	policy := policytest.New(t, New(), map[string]any{"off_below": 2.0}).(*lucid)
	v := turns(coretest.MakeJob("r").Replicas(4).Work(10).Running(0, core.Seat{Devices: 15}).Progress(10, 0), policytest.Waits(8).Work(0))
	for range 5 {
		policytest.Ask(t, policy, v, policytest.Rigid)
	}
	if len(policy.recent) != 2 {
		t.Errorf("%d jobs were submitted, want 2", len(policy.recent))
	}
	v.NowSeconds += 3600
	policytest.Ask(t, policy, v, policytest.Rigid)
	if len(policy.recent) != 2 {
		t.Errorf("%d jobs within an hour, want 2", len(policy.recent))
	}
	v.NowSeconds += 0.1
	policytest.Ask(t, policy, v, policytest.Rigid)
	if len(policy.recent) != 0 {
		t.Errorf("%d jobs after more than an hour, want none", len(policy.recent))
	}
}

// The answer stands until more can be packed: until those that start now run, and until a pause is over, after which rates are measured.
func TestLucidStands(t *testing.T) {
	half, other := core.Seat{Node: 0, Devices: 15}, core.Seat{Node: 1, Devices: 15}
	host := func() *coretest.JobBuilder { return coretest.MakeJob("r").Replicas(4).Work(5000).Running(900, half) }
	for name, tc := range map[string]struct {
		config map[string]any
		jobs   []*coretest.JobBuilder
		want   float64
	}{
		"all run":                              {nil, []*coretest.JobBuilder{host(), coretest.MakeJob("r").Replicas(4).Running(900, other)}, policytest.Forever},
		"one starts, and nobody waits":         {map[string]any{"pack": packFirst}, []*coretest.JobBuilder{host(), policytest.Waits(4)}, 1000}, // whether it is seated
		"one starts, and another waits":        {nil, []*coretest.JobBuilder{host(), policytest.Waits(4), policytest.Waits(4)}, 1000},
		"one starts with sharing off":          {map[string]any{"sharing": false}, []*coretest.JobBuilder{host(), policytest.Waits(4), policytest.Waits(4)}, policytest.Forever},
		"one pauses":                           {nil, []*coretest.JobBuilder{host().Progress(0, 1).Running(1030, half)}, 1030},
		"one pauses of which no rate is known": {nil, []*coretest.JobBuilder{host().Running(1030, half)}, policytest.Forever},
		"no job starts, and one keeps waiting": {nil, []*coretest.JobBuilder{host(), coretest.MakeJob("r").Replicas(4).Running(900, other), policytest.Waits(4)}, policytest.Forever},
		"of two that pause the first to go on": {nil, []*coretest.JobBuilder{host().Progress(0, 1).Running(1060, half), coretest.MakeJob("r").Replicas(4).Progress(0, 1).Running(1030, other)}, 1030},
	} {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, New(), tc.config), turns(tc.jobs...)
			if got := policytest.StandsUntil(t, policy, v, policytest.Ask(t, policy, v, policytest.Rigid)); got != tc.want {
				t.Errorf("stands until %v, want %v", got, tc.want)
			}
		})
	}
}

// Pairs keep what they hold, but not more than ready nodes have; jobs of other sizes are no pair.
func TestLucidKeeps(t *testing.T) {
	seat := core.Seat{Node: 0, Devices: 15}
	elastic := coretest.MakeJob("r").Elastic(2, 2, 4).Running(900, seat)
	drained := coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "t4", 2).TakesTurns(2, 16).Health(0, core.Draining).Obj()
	for name, tc := range map[string]struct {
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"what it holds, not what it requested": {coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(2, 16).Obj(), []*coretest.JobBuilder{elastic}, "0×4"},
		"as many as are left of ready nodes":   {drained, []*coretest.JobBuilder{elastic}, "0×2"},
		"of three on a device two are a pair":  {coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(3, 16).Obj(), []*coretest.JobBuilder{policytest.Runs(4), policytest.Runs(4), policytest.Runs(4)}, "0+1×4 2×4"},
	} {
		v := coretest.MakeView(tc.cluster).Now(1000).Jobs(tc.jobs...).Obj()
		if got := policytest.Units(policytest.Ask(t, policytest.New(t, New(), nil), v, policytest.Rigid)); got != tc.want {
			t.Errorf("%s: granted %s, want %s", name, got, tc.want)
		}
	}
}

// The log is told once that jobs which do not tell their utilisation are not packed, and never without sharing.
func TestLucidWarnsOnce(t *testing.T) {
	for sharing, want := range map[bool]int{true: 1, false: 0} {
		out := &strings.Builder{}
		f := New()
		decoded, _ := f.Decode(map[string]any{"sharing": sharing})
		policy, err := f.New(decoded, core.Settings{Log: slog.New(slog.NewTextHandler(out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		policytest.Ask(t, policy, turns(policytest.Waits(1).Work(1).Utilisation(0.5), policytest.Waits(1).Work(1), policytest.Waits(1).Work(1)), policytest.Rigid)
		if got := strings.Count(out.String(), "never packed"); got != want {
			t.Errorf("sharing %t: %d warnings, want %d: %s", sharing, got, want, out)
		}
	}
}
