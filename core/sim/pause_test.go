package sim

import (
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

func TestStartPause(t *testing.T) {
	own := []restart.Application{{Application: "", Overhead: 7 * time.Second}} // that of the jobs that open submits
	for name, tc := range map[string]struct {
		config Config
		want   float64
	}{
		"restart":        {Config{Cost: restart.Cost{RestartOverhead: 30 * time.Second}}, 30},
		"application":    {Config{Cost: restart.Cost{RestartOverhead: 30 * time.Second, ApplicationOverhead: own}}, 7},
		"free at first":  {Config{Cost: restart.Cost{RestartOverhead: 30 * time.Second}, FreeFirstStart: true}, 0},
		"no cost at all": {Config{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, tc.config, 1, arrival{0, phased{10}})
			got := s.StartPause(0)
			if got != tc.want {
				t.Errorf("%v s, want %v", got, tc.want)
			}
			onEvents := core.Wake{OnEvents: true, BySeconds: 0}
			if _, err := s.Next(t.Context(), onEvents); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(t.Context(), []core.Change{start(0, seats(0, 1))}); err != nil {
				t.Fatal(err)
			}
			if paused := s.jobs.byID[0].pausedUntil; paused != got {
				t.Errorf("paused until %v s, want %v", paused, got)
			}
		})
	}
}
