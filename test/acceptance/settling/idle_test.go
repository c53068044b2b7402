package settling_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// passing are the allocations that grant devices to each job that they suffice for, in some order.
var passing = []string{
	"{type: fifo, config: {queue: backfill}}", "{type: fifo, config: {queue: backfill, preemptive: true}}", "{type: srtf}", "{type: srtf, config: {preemptive: false}}",
	"{type: las}", "{type: tiresias}", "{type: drf}", "{type: tetris}", "{type: edf}", "{type: ftf}",
	"{type: elastic_fifo}", "{type: elastic_srtf}", "{type: elastic_tiresias}", "{type: optimus}", "{type: afs}", "{type: elastic_dp}",
}

// No device is idle beside a waiting job that the placement could seat on it, in random worlds under every allocation that passes over a job that does
// not fit, with every placement of whole devices.
func TestNoDeviceIsIdleBesideAJobThatFits(t *testing.T) {
	placements := placementsOfWholeDevices()
	rapid.Check(t, func(r *rapid.T) {
		w, placement := drawWorld(r, placements)
		c := w.compose(t)
		config, problems := placement.Decode(nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		placer, err := placement.New(config, core.Settings{ID: "placement/" + placement.Type, Rand: core.NewRand(1, "check"), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		c.Observers = append(c.Observers, doortest.ObserverFunc(func(report *core.Report) {
			if name := seatedBeside(r, placer, report); name != "" {
				r.Fatalf("at %v s job %s waits, and %s seats it beside those that run\n%+v", report.View.NowSeconds, name, placement.Type, w)
			}
		}))
		result, err := c.Simulate(t.Context())
		if err != nil {
			r.Fatal(err)
		}
		if jobs := result.Summary.Jobs; jobs.Unfinished > 0 {
			r.Fatalf("%d jobs never end\n%+v", jobs.Unfinished, w)
		}
	})
}

// placementsOfWholeDevices are those that seat jobs on devices of their own, always the same ones.
func placementsOfWholeDevices() (placements []core.Factory[core.Placer]) {
	for _, p := range quartet.Builtins().Placement {
		if !p.Counts && p.Type != "random" && p.Type != "proposed" && (len(p.Sharing) == 0 || slices.Contains(p.Sharing, core.Exclusive)) {
			placements = append(placements, p)
		}
	}
	return placements
}

// drawWorld draws a cluster, jobs, an allocation that passes over jobs that do not fit, and a placement.
func drawWorld(r *rapid.T, placements []core.Factory[core.Placer]) (world, core.Factory[core.Placer]) {
	placement := rapid.SampledFrom(placements).Draw(r, "placement")
	nodes, types := drawNodes(r)
	return world{
		nodes: strings.Join(nodes, ", "), rows: drawRows(r, types), allocation: rapid.SampledFrom(passing).Draw(r, "allocation"),
		placement: "{type: " + placement.Type + "}",
	}, placement
}

// seatedBeside is the name of a waiting job that a placer seats beside those that run, all as they are; empty for none.
func seatedBeside(r *rapid.T, placer core.Placer, report *core.Report) string {
	v := report.View
	var running []core.Grant
	for _, id := range v.Active {
		if j := v.Job(id); j.State == core.Running {
			running = append(running, core.Grant{Job: id, Accelerator: core.AnyAccelerator, Replicas: j.Held})
		}
	}
	stopped := map[core.JobID]bool{}
	for _, c := range report.Changes {
		stopped[c.Job] = c.Action == core.Stop
	}
	for _, id := range v.Active {
		j := v.Job(id)
		if j.State != core.Waiting || stopped[id] {
			continue
		}
		grants := append(slices.Clip(running), core.Grant{Job: id, Accelerator: core.AnyAccelerator, Replicas: j.Requested})
		seating, err := placer.Place(context.Background(), v, grants)
		if err != nil {
			r.Fatal(err)
		}
		stays := 0
		for _, p := range seating.Placed {
			if had := v.Job(p.Job); p.Job == id || core.SameSeats(had.Seats, p.Seats) {
				stays++
			}
		}
		if stays == len(grants) {
			return j.Name
		}
	}
	return ""
}

var kinds = []string{"a", "b", "c"}

// drawNodes draws the nodes of a cluster, and the types that they have.
func drawNodes(r *rapid.T) (nodes, types []string) {
	for i := range rapid.IntRange(1, 5).Draw(r, "nodes") {
		of := rapid.SampledFrom(kinds).Draw(r, "type")
		nodes, types = append(nodes, fmt.Sprintf("{name: n%d, accelerator: %s, devices: %d}", i, of, rapid.IntRange(1, 8).Draw(r, "devices"))), append(types, of)
	}
	return nodes, types
}

func drawRows(r *rapid.T, types []string) string {
	var b strings.Builder
	b.WriteString("small,0,1,1,\n") // that fits
	for i := range rapid.IntRange(1, 16).Draw(r, "jobs") {
		on := ""
		if rapid.Bool().Draw(r, "restricted") {
			on = rapid.SampledFrom(types).Draw(r, "on")
		}
		fmt.Fprintf(&b, "j%d,%d,%d,%d,%s\n", i, rapid.IntRange(0, 600).Draw(r, "submit"), rapid.IntRange(1, 3000).Draw(r, "duration"), rapid.IntRange(1, 9).Draw(r, "replicas"), on)
	}
	return b.String()
}
