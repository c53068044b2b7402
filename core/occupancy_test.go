package core_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// anywhere seats jobs by chance, and knows whether its last answer was on free devices.
type anywhere struct {
	t       *rapid.T
	legal   bool
	evicted map[core.JobID]int // how often it took devices of a job away
}

func (p *anywhere) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	var s core.Seating
	taken := make(map[core.NodeID]core.DeviceSet)
	p.legal = true
	for _, g := range grants {
		j := v.Jobs[g.Job]
		seats := j.Seats
		if j.Held == 0 || rapid.IntRange(0, 3).Draw(p.t, "move") == 0 {
			seats = []core.Seat{{Node: core.NodeID(rapid.IntRange(0, 3).Draw(p.t, "node")), Devices: 1 << rapid.IntRange(0, 2).Draw(p.t, "device")}}
		}
		node := &v.Cluster.Nodes[seats[0].Node]
		free := node.Usable()&seats[0].Devices == seats[0].Devices && taken[node.ID]&seats[0].Devices == 0
		if !free && rapid.IntRange(0, 9).Draw(p.t, "wrong") > 0 {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			continue
		}
		p.legal = p.legal && free
		taken[node.ID] |= seats[0].Devices
		evicted := j.Held > 0 && rapid.IntRange(0, 4).Draw(p.t, "evicted") == 0
		if evicted {
			p.evicted[g.Job]++
		}
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats, Evicted: evicted})
	}
	return s, nil
}

// Through rounds in which jobs come, stay, move and go, and nodes come and go, a seating is refused just when it is not on free
// devices of ready nodes, and the devices used are those that jobs hold.
func TestSeatingsAreHeldToFreeDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &core.Cluster{Accelerators: []string{"t4"}}
		for i := range core.NodeID(4) {
			c.Nodes = append(c.Nodes, core.Node{ID: i, Name: string(rune('w' + i)), Devices: 3})
		}
		stages, placer, told := fakes{}.stages(), &anywhere{t: t, evicted: make(map[core.JobID]int)}, &recorder{}
		stages.Placement.Policy = placer
		p := core.NewPipeline(c, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{told}})
		jobs := core.JobID(0)
		for round := range 12 {
			seen := core.Observation{NowSeconds: float64(60 * round)}
			for _, j := range p.Unfinished() {
				if rapid.IntRange(0, 4).Draw(t, "ends") == 0 {
					seen.Events = append(seen.Events, core.Event{Kind: core.JobFinished, AtSeconds: seen.NowSeconds, Job: j.ID})
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "health changes") == 0 {
				seen.Events = append(seen.Events, core.Event{
					Kind: core.NodeChanged, AtSeconds: seen.NowSeconds,
					Node: core.NodeID(rapid.IntRange(0, 3).Draw(t, "of")), Health: rapid.SampledFrom([]core.Health{core.Ready, core.Ready, core.Draining}).Draw(t, "to"),
				})
			}
			for range rapid.IntRange(0, 3).Draw(t, "jobs") {
				seen.Events = append(seen.Events, submit(jobs, seen.NowSeconds, 1))
				jobs++
			}
			placer.legal = true // when it is not asked
			err := p.Round(context.Background(), seen, &script{})
			var broken *core.InvariantError
			switch {
			case placer.legal && err != nil:
				t.Fatalf("round %d: %v", round, err)
			case !placer.legal && (!errors.As(err, &broken) || broken.Rule != core.RuleDeviceOnce):
				t.Fatalf("round %d: error %v, want %q broken", round, err, core.RuleDeviceOnce)
			case err != nil:
				return
			}
			held := 0
			for _, j := range p.Unfinished() {
				held += j.Held
				if j.State == core.Running && j.Preemptions < placer.evicted[j.ID] {
					t.Fatalf("round %d: %d preemptions of job %d, evicted %d times", round, j.Preemptions, j.ID, placer.evicted[j.ID])
				}
			}
			if used := told.used[round]; used != held {
				t.Fatalf("round %d: %d devices used, want the %d held", round, used, held)
			}
		}
	})
}
