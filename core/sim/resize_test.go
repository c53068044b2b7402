package sim

import (
	"context"
	"errors"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

// finish holds rounds every 5 s and applies each change at its moment. It returns when job 0 ends.
func finish(t *testing.T, s *Simulator, changes map[float64][]core.Change) float64 {
	t.Helper()
	for now := 0.0; ; {
		seen, err := s.Next(context.Background(), by(now, 5))
		if errors.Is(err, io.EOF) {
			t.Fatal("the job does not end")
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range seen.Events {
			if e.Kind == core.JobFinished {
				return e.AtSeconds
			}
		}
		if err := s.Apply(context.Background(), changes[seen.NowSeconds]); err != nil {
			t.Fatal(err)
		}
		now = seen.NowSeconds + 5
	}
}

// A job of 100 s on one device starts at 0, and pauses for 30 s then; what happens to it later is told by each case.
func TestAPauseIsNeitherForgottenNorDoubled(t *testing.T) {
	second := time.Second
	restarted := Config{Cost: restart.Cost{RestartOverhead: 30 * second}}
	inPlace, slowTuning, light, free := restarted, restarted, restarted, restarted
	inPlace.Resize = Resize{InPlace: true, Overhead: 10 * second}
	slowTuning.TuneOverhead = 5 * second
	light.Resize = Resize{InPlace: true, Overhead: 40 * second}
	free.Resize = Resize{InPlace: true}
	moved := func(seats ...core.Seat) []core.Change {
		return []core.Change{{Action: core.Move, Seats: seats}}
	}
	tuned := func(batch int) []core.Change {
		return []core.Change{{Action: core.Tune, Tuning: core.Tuning{BatchPerDevice: batch}}}
	}
	two, elsewhere := moved(seats(0, 0b11)), moved(seats(1, 0b11))
	for name, tc := range map[string]struct {
		config Config
		later  map[float64][]core.Change
		want   float64
	}{
		"nothing":                 {inPlace, nil, 130},
		"a device more":           {inPlace, map[float64][]core.Change{60: two}, 70 + 35},
		"a device more, for free": {free, map[float64][]core.Change{60: two}, 60 + 35},
		"a device more, resizing being no cheaper":       {light, map[float64][]core.Change{60: two}, 90 + 35},
		"a device more, without in_place":                {restarted, map[float64][]core.Change{60: two}, 90 + 35},
		"a device more on another node":                  {inPlace, map[float64][]core.Change{60: moved(seats(0, 1), seats(1, 1))}, 70 + 35},
		"another node":                                   {inPlace, map[float64][]core.Change{60: elsewhere}, 90 + 35},
		"other devices of its node":                      {inPlace, map[float64][]core.Change{60: moved(seats(0, 0b110))}, 90 + 35},
		"a stop in between":                              {inPlace, map[float64][]core.Change{60: {stop(0)}, 65: two}, 95 + 35},
		"a stop and a start in one round":                {inPlace, map[float64][]core.Change{60: {stop(0), start(0, seats(0, 0b11))}}, 90 + 35},
		"a resize early in the pause of the start":       {inPlace, map[float64][]core.Change{10: two}, 30 + 50},
		"a resize late in the pause of the start":        {inPlace, map[float64][]core.Change{25: two}, 35 + 50},
		"a free resize in the pause of the start":        {free, map[float64][]core.Change{25: two}, 30 + 50},
		"a resize in the pause of a resize":              {inPlace, map[float64][]core.Change{60: two, 65: moved(seats(0, 0b10))}, 75 + 70},
		"a resize told twice":                            {inPlace, map[float64][]core.Change{60: two, 65: two}, 70 + 35},
		"a move in the pause of the start":               {inPlace, map[float64][]core.Change{10: elsewhere}, 40 + 50},
		"a restart in the pause of the start":            {restarted, map[float64][]core.Change{10: two}, 40 + 50},
		"a resize in the pause of a move":                {inPlace, map[float64][]core.Change{60: elsewhere, 65: moved(seats(1, 0b1))}, 90 + 70},
		"another batch":                                  {restarted, map[float64][]core.Change{60: tuned(8)}, 130},
		"another batch in the pause of the start":        {restarted, map[float64][]core.Change{10: tuned(8)}, 130},
		"another batch that takes time":                  {slowTuning, map[float64][]core.Change{60: tuned(8)}, 135},
		"the same batch again":                           {slowTuning, map[float64][]core.Change{60: tuned(8), 80: tuned(8)}, 135},
		"such a batch early in the pause of the start":   {slowTuning, map[float64][]core.Change{10: tuned(8)}, 130},
		"such a batch at the end of it":                  {slowTuning, map[float64][]core.Change{25: tuned(8)}, 130},
		"such a batch after the pause of the start":      {slowTuning, map[float64][]core.Change{30: tuned(8)}, 135},
		"another batch after a resize in the same pause": {Config{Cost: restart.Cost{RestartOverhead: 30 * second}, Resize: inPlace.Resize, TuneOverhead: 15 * second}, map[float64][]core.Change{60: two, 65: tuned(8)}, 80 + 35},
	} {
		for _, progress := range []string{exact, perRound} {
			t.Run(name+", "+progress, func(t *testing.T) {
				config := tc.config
				config.Publication = Publication{FirstRound: atStart, Progress: progress}
				changes := map[float64][]core.Change{0: {start(0, seats(0, 1))}}
				maps.Copy(changes, tc.later)
				s := open(t, config, 2, arrival{0, phased{100}})
				if got := finish(t, s, changes); got != tc.want {
					t.Errorf("ends at %v s, want %v s", got, tc.want)
				}
			})
		}
	}
}
