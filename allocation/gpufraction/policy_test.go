package gpufraction

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// All jobs were submitted at 0 s, and it is 1000 s. Guarantees are 0.95, 0.7 and 0, so that one that had x of its demand in so many
// seconds has a surplus of x less 950, 700 and 0 s.
func TestGPUFraction(t *testing.T) {
	had := func(seconds float64, j *coretest.JobBuilder, devices float64) *coretest.JobBuilder {
		return j.Executed(seconds, seconds*devices)
	}
	premium := func(j *coretest.JobBuilder) *coretest.JobBuilder { return j.Tier(core.Premium) }
	standard := func(j *coretest.JobBuilder) *coretest.JobBuilder { return j.Tier(core.Standard) }
	basic := func(j *coretest.JobBuilder) *coretest.JobBuilder { return j.Tier(core.Basic) }
	elastic := func(least, asked, most, holds int) *coretest.JobBuilder { // runs since 900 s
		return policytest.Runs(holds).Elastic(least, asked, most)
	}
	for name, tc := range map[string]struct {
		jobs []*coretest.JobBuilder
		want string
	}{
		"by tier":         {[]*coretest.JobBuilder{basic(policytest.Waits(4)), standard(policytest.Waits(4)), premium(policytest.Waits(4))}, "2×4 1×4"},
		"none is basic":   {[]*coretest.JobBuilder{policytest.Waits(8), standard(policytest.Waits(8))}, "1×8"},
		"by deficit":      {[]*coretest.JobBuilder{standard(had(100, policytest.Waits(8), 8)), standard(policytest.Waits(8))}, "1×8"},
		"ties by rank":    {[]*coretest.JobBuilder{standard(policytest.Waits(8)), standard(policytest.Waits(8))}, "0×8"},
		"a basic one too": {[]*coretest.JobBuilder{had(100, policytest.Waits(8), 8), policytest.Waits(8)}, "1×8"},
		// Both are guaranteed, and nothing is left for job 0.
		"one that does not fit lets others by": {[]*coretest.JobBuilder{policytest.Waits(2), premium(policytest.Waits(6)), premium(policytest.Waits(4))}, "1×6 0×2"},

		"the victim is the furthest ahead":           {[]*coretest.JobBuilder{had(500, policytest.Runs(4), 4), had(400, policytest.Runs(4), 4), premium(policytest.Waits(4))}, "2×4 1×4"},
		"whatever its rank":                          {[]*coretest.JobBuilder{had(400, policytest.Runs(4), 4), had(500, policytest.Runs(4), 4), premium(policytest.Waits(4))}, "2×4 0×4"},
		"and of the lowest tier":                     {[]*coretest.JobBuilder{standard(had(900, policytest.Runs(4), 4)), basic(policytest.Runs(4)), premium(policytest.Waits(4))}, "2×4 0×4"},
		"who is behind takes from those who are not": {[]*coretest.JobBuilder{basic(policytest.Runs(8)), standard(had(400, policytest.Waits(8), 8))}, "1×8"},
		"who is not behind takes from nobody":        {[]*coretest.JobBuilder{basic(policytest.Runs(8)), basic(policytest.Waits(8))}, "0×8"},

		"the victim shrinks":                        {[]*coretest.JobBuilder{elastic(1, 8, 8, 8), premium(policytest.Waits(5))}, "1×5 0×3"},
		"all shrink before one loses all":           {[]*coretest.JobBuilder{elastic(1, 4, 4, 4), elastic(1, 4, 4, 4), premium(policytest.Waits(6))}, "2×6 0×1 1×1"},
		"it gets back what it lost":                 {[]*coretest.JobBuilder{elastic(1, 8, 8, 3)}, "0×8"},
		"nobody gives way to one that gets it back": {[]*coretest.JobBuilder{elastic(1, 6, 6, 2), elastic(1, 6, 6, 6)}, "0×2 1×6"},
		"before others begin":                       {[]*coretest.JobBuilder{elastic(1, 7, 7, 3), policytest.Waits(2)}, "0×7"},
		"less than it requests is better":           {[]*coretest.JobBuilder{premium(policytest.Waits(6)), standard(policytest.Waits(1).Elastic(1, 4, 4))}, "0×6 1×2"},
		"what is spare goes beyond":                 {[]*coretest.JobBuilder{policytest.Waits(2).Elastic(1, 2, 8), policytest.Waits(1)}, "0×7 1×1"},
		"by turns":                                  {[]*coretest.JobBuilder{policytest.Waits(1).Elastic(1, 1, 8), policytest.Waits(1).Elastic(1, 1, 8)}, "0×4 1×4"},
		"to who had it":                             {[]*coretest.JobBuilder{elastic(1, 1, 8, 1), elastic(1, 1, 8, 7)}, "0×1 1×7"},
		"and from him to one that has nothing":      {[]*coretest.JobBuilder{elastic(1, 1, 8, 8), policytest.Waits(4)}, "0×4 1×4"},

		"a pinned one keeps its devices": {[]*coretest.JobBuilder{policytest.Runs(4).Pinned(), premium(policytest.Waits(8)), premium(policytest.Waits(4))}, "0×4 2×4"},

		"it goes on for a while":         {[]*coretest.JobBuilder{standard(had(700, policytest.Runs(8), 8)), standard(had(500, policytest.Waits(8), 8))}, "0×8"},
		"until the other misses as much": {[]*coretest.JobBuilder{standard(had(700, policytest.Runs(8), 8)), standard(had(400, policytest.Waits(8), 8))}, "1×8"},
	} {
		t.Run(name, func(t *testing.T) {
			v := policytest.EightDevices(tc.jobs...)
			for _, j := range v.Jobs {
				if j.State == core.Waiting && j.Executed > 0 { // it was preempted
					j.AsOfSeconds = 900
				}
			}
			if got := policytest.Allocate(t, policytest.New(t, New(), nil), v, policytest.Range); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A premium job can be ahead by 180 s. It gives way to a standard one that is behind when it is so by half of what that is above the 60 s
// that a round may cost it.
func TestGPUFractionTakesFromHigherTiersThatAreAhead(t *testing.T) {
	for name, tc := range map[string]struct {
		now  float64
		want string
	}{"not yet": {2399, "0×8"}, "now": {2401, "1×8"}} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Now(tc.now).Jobs(
				coretest.MakeJob("p").Replicas(8).Tier(core.Premium).Running(0, coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0, 1, 2, 3)),
				policytest.Waits(8).Tier(core.Standard),
			).Obj()
			if got := policytest.Allocate(t, policytest.New(t, New(), nil), v, policytest.Range); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGPUFractionRefusesWhatItCannotGuarantee(t *testing.T) {
	v := policytest.EightDevices(policytest.Waits(1).Tier("gold"))
	if _, err := policytest.New(t, New(), nil).Allocate(t.Context(), v, coretest.Candidates(v, policytest.Range)); err == nil ||
		!strings.HasSuffix(err.Error(), `of unknown tier "gold"; valid values: premium, standard, basic`) {
		t.Errorf("an unknown tier: error %v", err)
	}
	_, problems := New().Decode(map[string]any{"standard": 0.96, "basic": 0.97})
	want := core.Diagnostics{
		{Path: "standard", Summary: "must be at most premium, 0.95, got 0.96"}, {Path: "basic", Summary: "must be at most standard, 0.96, got 0.97"},
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// An answer stands until somebody falls behind, or has made up for it: if it is seated, and while nobody who is behind lacks anything.
func TestGPUFractionStands(t *testing.T) {
	ran := func(devices int, seconds float64) *coretest.JobBuilder { // up to now, since it was submitted
		return coretest.MakeJob("r").Replicas(devices).Submit(1000-seconds).Running(1000-seconds, coretest.Seat(0, 0), coretest.Seat(1, 0))
	}
	for name, tc := range map[string]struct {
		jobs []*coretest.JobBuilder
		want float64
	}{
		"basic jobs":                        {[]*coretest.JobBuilder{ran(2, 500), policytest.Waits(8)}, policytest.Forever},
		"one that has all that it requests": {[]*coretest.JobBuilder{ran(2, 500).Tier(core.Premium)}, 500 + 120/0.05}, // at 0.05 s a second
		"two of them":                       {[]*coretest.JobBuilder{ran(2, 500).Tier(core.Premium), ran(2, 800).Tier(core.Standard)}, 200 + 420/0.3},
		"one that lacks all":                {[]*coretest.JobBuilder{policytest.Waits(5).Tier(core.Premium), policytest.Waits(5).Tier(core.Premium)}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, New(), nil), policytest.EightDevices(tc.jobs...)
			grants := policytest.Ask(t, policy, v, policytest.Range)
			standing := policy.(core.Steady).Standing()
			if standing.IfSeated != len(grants) || !(standing.UntilSeconds == tc.want || math.Abs(standing.UntilSeconds-tc.want) <= 2*queue.EarlySeconds) {
				t.Errorf("stands %+v, want until %v s, if %d grants are seated", standing, tc.want, len(grants))
			}
		})
	}
}

// fractionWorld is a cluster on which every grant is seated at once, and the books of what each job had, in steps of a second.
type fractionWorld struct {
	v           *core.View
	had         map[core.JobID][]float64 // of its demand, second by second since its submission
	preemptions int
	until       map[core.JobID]float64
}

const fractionWindow = 600 // seconds, short to have much happen

func newFractionWorld(devices int, jobs ...*coretest.JobBuilder) *fractionWorld {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", devices).Obj()).Jobs(jobs...).Obj()
	v.Active = v.Active[:0]
	return &fractionWorld{v: v, had: map[core.JobID][]float64{}, until: map[core.JobID]float64{}}
}

// pass lets time pass second by second, up to when the world says that something happened.
func (w *fractionWorld) pass(seconds int) (happened bool) {
	v := w.v
	for range seconds {
		for _, id := range v.Active {
			j := v.Jobs[id]
			w.had[id] = append(w.had[id], min(float64(j.Held)/float64(j.Requested), 1))
		}
		v.NowSeconds++
	}
	for _, id := range slices.Clone(v.Active) {
		if w.until[id] <= v.NowSeconds {
			happened, v.Jobs[id] = true, nil
			v.Active = slices.DeleteFunc(v.Active, func(a core.JobID) bool { return a == id })
		}
	}
	return w.submit() || happened
}

// submit makes those candidates whose time has come.
func (w *fractionWorld) submit() (some bool) {
	for _, j := range w.v.Jobs {
		if j != nil && j.SubmitSeconds == w.v.NowSeconds {
			w.v.Active = append(w.v.Active, j.ID)
			some = true
		}
	}
	slices.Sort(w.v.Active)
	return some
}

// seat gives everyone what he is granted.
func (w *fractionWorld) seat(granted map[core.JobID]int) {
	for _, id := range w.v.Active {
		j, n := w.v.Jobs[id], granted[id]
		if j.Held == n {
			continue
		}
		if n == 0 {
			w.preemptions++
		}
		j.Attained, j.AsOfSeconds = j.AttainedService(w.v.NowSeconds), w.v.NowSeconds
		j.Held, j.State, j.Seats = n, core.Waiting, nil
		if n > 0 {
			j.State, j.Seats = core.Running, []core.Seat{{Devices: core.FirstDevices(n)}}
		}
	}
}

// surplus is worked out second by second.
func (w *fractionWorld) surplus(j *core.Job) float64 {
	recent := w.had[j.ID][max(len(w.had[j.ID])-fractionWindow, 0):]
	sum := 0.0
	for _, part := range recent {
		sum += part
	}
	return sum - core.UsualGuarantees()[core.TierRank(j.Tier)]*float64(len(recent))
}

func granted(grants []core.Grant) map[core.JobID]int {
	by := map[core.JobID]int{}
	for _, g := range grants {
		by[g.Job] = g.Replicas
	}
	return by
}

func drawFractionWorld(t *rapid.T) *fractionWorld {
	devices := rapid.IntRange(1, 8).Draw(t, "devices")
	var jobs []*coretest.JobBuilder
	var ends []float64
	for range rapid.IntRange(1, 10).Draw(t, "jobs") {
		least := rapid.IntRange(1, devices).Draw(t, "least")
		asked := rapid.IntRange(least, devices).Draw(t, "asked")
		submit := 60 * float64(rapid.IntRange(0, 20).Draw(t, "submitted"))
		j := coretest.MakeJob("j").Elastic(least, asked, rapid.IntRange(asked, devices).Draw(t, "most")).
			Submit(submit).Tier(rapid.SampledFrom(append(core.Tiers(), "")).Draw(t, "tier")).Waiting()
		jobs = append(jobs, j)
		ends = append(ends, submit+60*float64(rapid.IntRange(1, 60).Draw(t, "lasts")))
	}
	w := newFractionWorld(devices, jobs...)
	for i, end := range ends {
		w.until[core.JobID(i)] = end
	}
	w.submit()
	return w
}

var shortWindow = map[string]any{"window": "10m", "turn": "1m"}

// No job is below its fraction for the sake of one of a lower tier that is above its own, and no device that anybody can use is
// idle. Whoever asks only when the answer no longer stands gets the same ones.
func TestGPUFractionKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawFractionWorld(t)
		always, skipping := policytest.New(t, New(), shortWindow), policytest.New(t, New(), shortWindow)
		var standing map[core.JobID]int
		until, asked := 0.0, 0
		for round := range 60 {
			now := granted(policytest.Ask(t, always, w.v, policytest.Range))
			w.checkTiers(t, now)
			w.checkSpare(t, now)
			if w.v.NowSeconds >= until {
				asked++
				standing = granted(policytest.Ask(t, skipping, w.v, policytest.Range))
				until = skipping.(core.Steady).Standing().UntilSeconds
			}
			if diff := cmp.Diff(now, standing); diff != "" {
				t.Fatalf("round %d: answers of one that is asked always (-) and of one that is asked when it may answer otherwise (+):\n%s", round, diff)
			}
			w.seat(now)
			if w.pass(60) {
				until = 0
			}
		}
	})
}

func (w *fractionWorld) left(granted map[core.JobID]int) int {
	left := w.v.Devices
	for _, n := range granted {
		left -= n
	}
	return left
}

func (w *fractionWorld) checkTiers(t *rapid.T, granted map[core.JobID]int) {
	for _, id := range w.v.Active {
		j := w.v.Jobs[id]
		if granted[id] >= j.Requested || w.surplus(j) > -1e-6 {
			continue
		}
		could := w.left(granted)
		for _, other := range w.v.Active {
			if o := w.v.Jobs[other]; core.TierRank(o.Tier) > core.TierRank(j.Tier) && w.surplus(o) > 1e-6 {
				could += granted[other]
			}
		}
		if more := max(granted[id]+1, j.MinReplicas) - granted[id]; more <= could {
			t.Fatalf("%v s: job %d, %s, with a surplus of %v s has %d of %d, and could have %d more: %v", w.v.NowSeconds, id, j.Tier, w.surplus(j), granted[id], j.Requested, could, granted)
		}
	}
}

func (w *fractionWorld) checkSpare(t *rapid.T, granted map[core.JobID]int) {
	left := w.left(granted)
	if left < 0 {
		t.Fatalf("%d devices more than there are: %v", -left, granted)
	}
	for _, id := range w.v.Active {
		if j := w.v.Jobs[id]; granted[id] < j.MaxReplicas && max(granted[id]+1, j.MinReplicas)-granted[id] <= left {
			t.Fatalf("job %d has %d of %d, and %d devices are idle: %v", id, granted[id], j.MaxReplicas, left, granted)
		}
	}
}

// Those who must share take turns, and those who need not stay.
func TestGPUFractionTakesFewTurns(t *testing.T) {
	job := func(tier string) *coretest.JobBuilder { return policytest.Waits(1).Tier(tier) }
	for name, tc := range map[string]struct {
		jobs []*coretest.JobBuilder
		most int // preemptions in ten hours
		met  []float64
	}{
		"two basic ones":                {[]*coretest.JobBuilder{job(""), job("")}, 0, []float64{1, 0}},
		"premium and basic":             {[]*coretest.JobBuilder{job(core.Basic), job(core.Premium)}, 0, []float64{0, 1}},
		"two standard ones":             {[]*coretest.JobBuilder{job(core.Standard), job(core.Standard)}, 60, []float64{0.49, 0.49}},
		"premium and standard":          {[]*coretest.JobBuilder{job(core.Standard), job(core.Premium)}, 25, []float64{0.01, 0.95}},
		"standard, standard and basic":  {[]*coretest.JobBuilder{job(core.Standard), job(core.Basic), job(core.Standard)}, 60, []float64{0.49, 0, 0.49}},
		"premium, premium and standard": {[]*coretest.JobBuilder{job(core.Premium), job(core.Premium), job(core.Standard)}, 60, []float64{0.49, 0.49, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w, policy := newFractionWorld(1, tc.jobs...), policytest.New(t, New(), nil)
			for i := range tc.jobs {
				w.until[core.JobID(i)] = math.Inf(1)
			}
			w.submit()
			for range 600 {
				w.seat(granted(policytest.Ask(t, policy, w.v, policytest.Range)))
				w.pass(60)
			}
			t.Logf("%d preemptions", w.preemptions)
			if w.preemptions > tc.most {
				t.Errorf("%d preemptions, want at most %d", w.preemptions, tc.most)
			}
			for i, want := range tc.met {
				if got := w.v.Jobs[i].AttainedService(w.v.NowSeconds) / w.v.NowSeconds; got < want {
					t.Errorf("job %d had %v of its demand, want at least %v", i, got, want)
				}
			}
		})
	}
}

// One that takes up what another learned answers as that one does.
func TestGPUFractionGoesOnFromItsSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, policy := drawFractionWorld(t), policytest.New(t, New(), shortWindow)
		at := rapid.IntRange(1, 40).Draw(t, "at")
		var other core.Allocator
		for round := range 50 {
			if round == at {
				learned, err := policy.(core.Snapshotter).Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				other = policytest.New(t, New(), shortWindow)
				if err := other.(core.Snapshotter).Restore(learned); err != nil {
					t.Fatal(err)
				}
			}
			want := granted(policytest.Ask(t, policy, w.v, policytest.Range))
			if other != nil {
				if got := granted(policytest.Ask(t, other, w.v, policytest.Range)); !maps.Equal(got, want) {
					t.Fatalf("round %d: granted %v, want %v", round, got, want)
				}
			}
			w.seat(want)
			w.pass(60)
		}
	})
}

func TestGPUFractionRefusesBrokenSnapshots(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":            `{`,
		"a job twice":        `[{"Job":1,"Spans":[{}]},{"Job":1,"Spans":[{}]}]`,
		"a job without time": `[{"Job":1}]`,
		"time goes back":     `[{"Job":1,"Spans":[{"From":5},{"From":4}]}]`,
		"more than all":      `[{"Job":1,"Spans":[{"From":5,"Rate":1.5}]}]`,
	} {
		if err := policytest.New(t, New(), nil).(core.Snapshotter).Restore([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Ten thousand jobs of all tiers, on a tenth of what they request, after hours of rounds.
func BenchmarkGPUFraction(b *testing.B) {
	const n = 10_000
	jobs := make([]*coretest.JobBuilder, n)
	for i := range jobs {
		jobs[i] = policytest.Waits(1).Elastic(1, 1+i%4, 1+i%8).Tier(core.Tiers()[i%3])
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(n/32, "t4", 8).Obj()).Jobs(jobs...).Obj()
	w := &fractionWorld{v: v, had: map[core.JobID][]float64{}}
	candidates, policy := coretest.Candidates(v, policytest.Range), policytest.New(b, New(), nil)
	round := func() []core.Grant {
		v.NowSeconds += 60
		grants, err := policy.Allocate(context.Background(), v, candidates)
		if err != nil {
			b.Fatal(err)
		}
		return grants
	}
	for range 120 {
		w.seat(granted(round()))
	}
	for b.Loop() {
		grants := round()
		b.StopTimer()
		w.seat(granted(grants))
		b.StartTimer()
	}
}
