package synergy_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
	. "github.com/quartet-sched/quartet/policykit/synergy"
)

// toy is a server of four devices, two CPUs and 10 GB for each.
var (
	toy     = Server{Devices: 4, Resources: core.Resources{CPUs: 8, MemoryGB: 40}}
	toyFair = core.Resources{CPUs: 2, MemoryGB: 10}
)

func toyJob(devices int, cpus, memory, speed float64) Job {
	g := float64(devices)
	return Job{Devices: devices, Fair: toyFair.Times(g), Demand: core.Demand{Resources: core.Resources{CPUs: cpus, MemoryGB: memory}.Times(g), Speed: speed}}
}

// Cases computed by hand, section 4.2 of the paper.
func TestRound(t *testing.T) {
	t.Parallel()
	hungry, modest := toyJob(1, 6, 10, 2), toyJob(1, 1, 5, 1)
	type grant struct {
		CPUs, MemoryGB, Speed float64
		Seats                 []Seat
	}
	for name, tc := range map[string]struct {
		mode        Mode
		consolidate bool
		servers     int
		jobs        []Job
		want        []grant
	}{
		"fair gives the proportional share": {Fair, false, 1, []Job{hungry, modest}, []grant{{2, 10, 1, []Seat{{0, 1}}}, {2, 10, 1, []Seat{{0, 1}}}}},
		"greedy passes over who does not fit": {Greedy, false, 1, []Job{hungry, hungry, modest}, []grant{
			{6, 10, 2, []Seat{{0, 1}}}, {}, {1, 5, 1, []Seat{{0, 1}}},
		}},
		"tune falls back on the proportional share": {Tune, false, 1, []Job{hungry, hungry}, []grant{{6, 10, 2, []Seat{{0, 1}}}, {2, 10, 1, []Seat{{0, 1}}}}},
		"tune takes back what is missing": {Tune, false, 1, []Job{hungry, hungry, hungry}, []grant{
			{2, 10, 1, []Seat{{0, 1}}}, {2, 10, 1, []Seat{{0, 1}}}, {2, 10, 1, []Seat{{0, 1}}},
		}},
		"tune takes from the largest": {Tune, false, 2, []Job{
			toyJob(1, 3, 10, 1.5), toyJob(1, 5, 10, 2), toyJob(4, 2, 10, 1), hungry,
		}, []grant{
			{3, 10, 1.5, []Seat{{0, 1}}}, {2, 10, 1, []Seat{{0, 1}}}, {8, 40, 1, []Seat{{1, 4}}}, {2, 10, 1, []Seat{{0, 1}}},
		}},
		"nobody waits for a job without devices": {Tune, false, 1, []Job{toyJob(4, 1, 1, 1), modest}, []grant{{4, 4, 1, []Seat{{0, 4}}}, {}}},
		"devices are taken in order":             {Fair, false, 2, []Job{modest, toyJob(4, 2, 10, 1)}, []grant{{2, 10, 1, []Seat{{0, 1}}}, {8, 40, 1, []Seat{{0, 3}, {1, 1}}}}},
		"consolidated on one server":             {Fair, true, 2, []Job{modest, toyJob(4, 2, 10, 1)}, []grant{{2, 10, 1, []Seat{{0, 1}}}, {8, 40, 1, []Seat{{1, 4}}}}},
		"consolidated from the fullest": {Fair, true, 2, []Job{toyJob(3, 2, 10, 1), toyJob(2, 2, 10, 1), toyJob(3, 2, 10, 1)}, []grant{
			{6, 30, 1, []Seat{{0, 3}}}, {4, 20, 1, []Seat{{1, 2}}}, {6, 30, 1, []Seat{{0, 1}, {1, 2}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Packer{Mode: tc.mode, Consolidate: tc.consolidate}
			var got []grant
			for _, g := range p.Round([]Server{toy, toy}[:tc.servers], tc.jobs) {
				got = append(got, grant{g.CPUs, g.MemoryGB, g.Speed, g.Seats})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}

func drawJobs(t *rapid.T) []Job {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Job {
		job := toyJob(rapid.IntRange(1, 6).Draw(t, "devices"), float64(rapid.IntRange(1, 8).Draw(t, "cpus")), float64(rapid.IntRange(1, 40).Draw(t, "memory")), 1)
		if job.Demand.Over(job.Fair) {
			job.Demand.Speed = 1 + float64(rapid.IntRange(0, 20).Draw(t, "gain"))/10
		}
		return job
	}), 0, 12).Draw(t, "jobs")
}

func TestRoundProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		servers := []Server{toy, toy, toy}[:rapid.IntRange(1, 3).Draw(t, "servers")]
		jobs := drawJobs(t)
		p := Packer{Mode: Mode(rapid.IntRange(0, 2).Draw(t, "mode")), Consolidate: rapid.Bool().Draw(t, "consolidate")}
		grants := p.Round(servers, jobs)
		left := append([]Server(nil), servers...)
		free, speeds := 4*len(servers), 0.0
		var together []Measured
		for i, grant := range grants {
			job := jobs[i]
			if grant.Speed == 0 {
				if len(grant.Seats) > 0 || grant.CPUs != 0 || grant.MemoryGB != 0 {
					t.Fatalf("job %d has %+v and no speed", i, grant)
				}
				continue
			}
			seated := 0
			for _, seat := range grant.Seats {
				each := float64(seat.Devices) / float64(job.Devices)
				s := &left[seat.Server]
				s.Devices -= seat.Devices
				s.CPUs -= grant.CPUs * each
				s.MemoryGB -= grant.MemoryGB * each
				seated += seat.Devices
			}
			least := job.Fair.Least(job.Demand.Resources)
			switch {
			case seated != job.Devices:
				t.Fatalf("job %d has %d devices of %d", i, seated, job.Devices)
			case p.Mode == Fair && (grant.Resources != job.Fair || grant.Speed != 1), p.Mode == Greedy && (grant.Resources != job.Demand.Resources || grant.Speed != job.Demand.Speed):
				t.Fatalf("mode %d: job %d of %+v has %+v", p.Mode, i, job, grant)
			case grant.Speed < 1 || least.Over(grant.Resources):
				t.Fatalf("job %d of %+v runs below the proportional share: %+v", i, job, grant)
			}
			free -= job.Devices
			speeds += grant.Speed
			together = append(together, Measured{Job: job})
		}
		for at, s := range left {
			if s.Devices < 0 || s.CPUs < -1e-6 || s.MemoryGB < -1e-6 {
				t.Fatalf("server %d has %+v left", at, s)
			}
		}
		for i, grant := range grants {
			if p.Mode == Tune && grant.Speed == 0 && jobs[i].Devices <= free {
				t.Fatalf("%d devices are free, and job %d of %+v has no seat", free, i, jobs[i])
			}
		}
		if p.Mode != Greedy {
			best, err := Optimum(context.Background(), &optim.Bundles{}, Capacity{4 * len(servers), toy.Times(float64(len(servers)))}, together)
			if err != nil || best.Bound < speeds-1e-6 {
				t.Fatalf("speeds %v, bound %v, error %v", speeds, best.Bound, err)
			}
		}
	})
}

// A round allocates nothing once the buffers are there.
func TestRoundDoesNotAllocate(t *testing.T) {
	jobs := []Job{toyJob(1, 6, 10, 2), toyJob(3, 3, 20, 1.5), toyJob(4, 4, 10, 2), toyJob(1, 1, 5, 1), toyJob(3, 2, 10, 1)}
	servers := []Server{toy, toy, toy}
	for _, mode := range modes {
		p := Packer{Mode: mode}
		p.Round(servers, jobs)
		if n := testing.AllocsPerRun(100, func() { p.Round(servers, jobs) }); n > 0 {
			t.Errorf("mode %d: %v allocations a round", mode, n)
		}
	}
}

// Those that stay keep their seats in every mode, whatever they were given before; with tune, CPUs and memory go in the order of the jobs, and asking again
// changes nothing once somebody stays; in mode Greedy, once nobody more found a seat.
func TestThoseThatStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		servers := []Server{toy, toy, toy}
		for i := range servers {
			servers[i].Kind = rapid.IntRange(0, 1).Draw(t, "kind")
		}
		jobs := drawJobs(t)
		for i := range jobs {
			jobs[i].Kinds, jobs[i].Mixes = uint64(rapid.IntRange(0, 3).Draw(t, "kinds")), rapid.Bool().Draw(t, "mixes")
			jobs[i].Blocking = rapid.IntRange(0, 3).Draw(t, "blocking") == 0
		}
		before, p := Packer{Mode: Mode(rapid.IntRange(0, 2).Draw(t, "mode before"))}, Packer{Mode: Mode(rapid.IntRange(0, 2).Draw(t, "mode"))}
		for i, grant := range before.Round(servers, jobs) {
			if len(grant.Seats) > 0 && rapid.Bool().Draw(t, "runs") {
				jobs[i].Stays, jobs[i].Runs = append([]Seat(nil), grant.Seats...), true
			}
		}
		check := func() []Grant {
			left := append([]Server(nil), servers...)
			closed := uint64(0)
			grants := p.Round(servers, jobs)
			for i, grant := range grants {
				job := &jobs[i]
				if job.Stays != nil && cmp.Diff(job.Stays, grant.Seats) != "" {
					t.Fatalf("job %d of %+v has %+v", i, job, grant)
				}
				kinds := job.Kinds
				if kinds == 0 {
					kinds = 3
				}
				if len(grant.Seats) == 0 {
					if job.Blocking {
						closed |= kinds
					}
					continue
				}
				seated, of := 0, uint64(0)
				for _, seat := range grant.Seats {
					s := &left[seat.Server]
					each := float64(seat.Devices) / float64(job.Devices)
					s.Devices -= seat.Devices
					s.Resources = s.Plus(grant.Resources.Times(-each))
					seated, of = seated+seat.Devices, of|1<<uint(s.Kind)
				}
				if seated != job.Devices || of&^kinds != 0 || of == 3 && !job.Mixes || !job.Runs && of&closed != 0 {
					t.Fatalf("job %d of %+v has %+v, closed are %b", i, job, grant, closed)
				}
				if p.Mode != Greedy && job.Fair.Least(job.Demand.Resources).Over(grant.Resources) {
					t.Fatalf("job %d of %+v is below its part with %+v", i, job, grant)
				}
			}
			for at, s := range left {
				if s.Devices < 0 || s.CPUs < -1e-6 || s.MemoryGB < -1e-6 {
					t.Fatalf("server %d has %+v left", at, s)
				}
			}
			return grants
		}
		var first []Grant
		stay := func() {
			first = append([]Grant(nil), check()...)
			for i := range first {
				if first[i].Seats = append([]Seat(nil), first[i].Seats...); len(first[i].Seats) > 0 {
					jobs[i].Stays, jobs[i].Runs = first[i].Seats, true
				}
			}
		}
		anybody := slices.ContainsFunc(jobs, func(j Job) bool { return j.Stays != nil })
		stay()
		switch {
		case p.Mode == Tune && !anybody:
			// Nobody stays: it is as published, which takes from jobs on servers that it then may not use.
			stay()
		case p.Mode == Greedy:
			// Those that stay are given theirs in the order of the jobs one round later, of whom one may then have the proportional share, which leaves
			// a place to somebody else, and so on.
			seated := func() (n int) {
				for i := range first {
					if len(first[i].Seats) > 0 {
						n++
					}
				}
				return n
			}
			for before := -1; before < seated(); {
				before = seated()
				stay()
			}
		}
		for i, grant := range check() {
			if len(first[i].Seats) > 0 && cmp.Diff(first[i], grant) != "" {
				t.Fatalf("job %d had %+v, and has %+v when asked again", i, first[i], grant)
			}
		}
	})
}
