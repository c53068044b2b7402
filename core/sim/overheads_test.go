package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

// Two jobs of 100 s each share a device by turns, and a third one of 10 s has another: when they end, under each way to charge overheads. Jobs 0 and 1 pause for
// 3 and 4 s, job 2 for 2 s.
func TestOverheads(t *testing.T) {
	t.Parallel()
	on := func(devices core.DeviceSet) []core.Seat { return []core.Seat{seats(0, devices)} }
	jobs := []tenant{
		{work: 50, spec: core.JobSpec{Application: "a"}, seats: on(1)},
		{work: 100, spec: core.JobSpec{Application: "b"}, seats: on(1)},
		{work: 10, spec: core.JobSpec{Application: "c"}, seats: on(2)},
	}
	own := []restart.Application{{Application: "a", Overhead: 3 * time.Second}, {Application: "b", Overhead: 4 * time.Second}, {Application: "c", Overhead: 2 * time.Second}}
	for overhead, want := range map[string]map[core.JobID]float64{
		// 0: 3+100. 1: from 4 on at half speed up to 103 does 49.5, alone then.
		atStarts: {2: 12, 0: 103, 1: 153.5},
		// All of the device pause for 7 s together: 0 ends at 107, 1 has done 50, and pauses 4 s for itself alone.
		everyChange: {2: 12, 0: 107, 1: 161},
		// Nobody waits for the pause before its end: 2 ends at 10. In these 10 s 0 and 1 did 1.5; they pause for 7 s again, which the end of 0 does not wait for:
		// 0 ends at 10+97, when 1 has done 1.5+45. 1 does not wait for its own pause.
		everyRound: {2: 10, 0: 107, 1: 160.5},
	} {
		t.Run(overhead, func(t *testing.T) {
			c := Config{CoLocation: CoLocation{Model: "turns"}, Cost: restart.Cost{ApplicationOverhead: own}, Publication: Publication{Overhead: overhead}}
			if diff := cmp.Diff(want, endsOf(t, c, jobs), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}

// The overhead of an application is that of the most devices that a job asks for.
func TestOverheadsByDevices(t *testing.T) {
	t.Parallel()
	own := []restart.Application{{Application: "a", Overhead: 3 * time.Second}, {Application: "a", Overhead: 9 * time.Second, Devices: 8}, {Application: "a", Overhead: 5 * time.Second, Devices: 2}}
	for devices, want := range map[int]float64{1: 3, 2: 5, 7: 5, 8: 9, 64: 9} {
		c := Config{Cost: restart.Cost{RestartOverhead: time.Second, ApplicationOverhead: own}}
		ends := endsOf(t, c, []tenant{
			{work: 10, spec: core.JobSpec{Application: "a", Requested: devices}, seats: []core.Seat{seats(0, 1)}},
			{work: 10, spec: core.JobSpec{Application: "other", Requested: devices}, seats: []core.Seat{seats(0, 2)}},
		})
		if ends[0] != 10+want || ends[1] != 11 {
			t.Errorf("%d devices: ends at %v and %v, want %v and 11", devices, ends[0], ends[1], 10+want)
		}
	}
}

// With every_round a job whose replicas are still being started pauses for its overhead once they run, and one that runs pauses from the round on; what it did
// before stays done.
func TestPausesOfEveryRound(t *testing.T) {
	t.Parallel()
	c := Config{StartDelay: 10 * time.Second, Cost: restart.Cost{RestartOverhead: 5 * time.Second}, Publication: Publication{Overhead: everyRound}}
	s := open(t, c, 1, arrival{0, phased{100}})
	wake := core.Wake{IntervalSeconds: 60, BySeconds: 60}
	if _, err := s.Next(t.Context(), core.Wake{IntervalSeconds: 60}); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), []core.Change{{Round: 1, Action: core.Start, Seats: []core.Seat{seats(0, 1)}}}); err != nil {
		t.Fatal(err)
	}
	j := s.jobs.byID[0]
	if j.pausedUntil != 10+5 {
		t.Errorf("pauses until %v, want 15: 5 s after its replicas run", j.pausedUntil)
	}
	seen, err := s.Next(t.Context(), wake)
	if err != nil {
		t.Fatal(err)
	}
	if j.progress != 60-15 || j.pausedUntil != 60+5 || j.nextAt != 60+55 {
		t.Errorf("at 60 s it did %v, pauses until %v and ends at %v, want 45, 65 and 115", j.progress, j.pausedUntil, j.nextAt)
	}
	last := seen.Events[len(seen.Events)-1]
	if last.Kind != core.JobProgressed || last.FromSeconds != 65 || last.Progress != 45 {
		t.Errorf("reports %+v, want progress 45 from 65 s on", last)
	}
}
