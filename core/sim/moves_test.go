package sim

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

// Published by Sia: a move between like seats costs nothing, and ends no pause; any other does.
func TestFreeMoves(t *testing.T) {
	move := func(seats ...core.Seat) core.Change { return core.Change{Action: core.Move, Seats: seats} }
	cases := map[string]struct {
		moves string
		at    float64
		to    core.Change
		want  float64 // end of 100 units of work on two devices, which begin at 30 s
	}{
		"like seats":               {freeAlike, 40, move(seats(1, 0xc)), 80},
		"within the pause":         {freeAlike, 20, move(seats(1, 0xc)), 80},
		"as a restart":             {restartMoves, 40, move(seats(1, 0xc)), 110},
		"more devices":             {freeAlike, 40, move(seats(1, 0x7)), 70 + 80.0/3},
		"on another type":          {freeAlike, 40, move(seats(2, 0x3)), 110},
		"as many, over more nodes": {freeAlike, 40, move(seats(0, 0x1), seats(1, 0x1)), 110},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Cost: restart.Cost{RestartOverhead: 30e9}, Publication: Publication{Progress: exact, Moves: tc.moves}}, 3, arrival{0, phased{100}})
			s.devices.cluster.Accelerators = []string{"t4", "a100"}
			s.devices.cluster.Nodes[2].Accelerator = 1
			apply(t, s, by(0, 0), start(0, seats(0, 0x3)))
			apply(t, s, by(tc.at, 0), tc.to)
			for {
				o, err := s.Next(t.Context(), by(1000, 0))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range o.Events {
					if e.Kind == core.JobFinished {
						if e.AtSeconds != tc.want {
							t.Errorf("ends at %v, want %v", e.AtSeconds, tc.want)
						}
						return
					}
				}
			}
		})
	}
}

// apply goes to the next moment, which is that of wake, and makes a change there.
func apply(t *testing.T, s *Simulator, wake core.Wake, change core.Change) {
	t.Helper()
	if o, err := s.Next(t.Context(), wake); err != nil || wake.BySeconds != o.NowSeconds {
		t.Fatalf("at %v (%v), want %v", o.NowSeconds, err, wake.BySeconds)
	}
	if err := s.Apply(t.Context(), []core.Change{change}); err != nil {
		t.Fatal(err)
	}
}
