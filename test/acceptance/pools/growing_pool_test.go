package pools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// While a pool may grow nobody is turned away for what is not there yet: a scaler is shown who waits for it, and a pool whose nodes
// are taken away grows again. What no pool can ever hold is rejected at once.
func TestJobsOnAGrowingPool(t *testing.T) {
	t.Parallel()
	const header = "name,submit_s,duration_s,replicas,min_replicas,max_replicas,deadline_s\n"
	for name, tc := range map[string]struct {
		start, most                 int
		rows                        string
		events                      bool
		admission, replicas, scaler string
		world                       string
		completed, rejected, met    int
		makespan                    float64 // at most
	}{
		"deadlines on nodes to come": {
			1, 4, "a,0,3600,4,4,4,4000\nb,60,3600,4,4,4,5000\nc,120,3600,8,1,16,5000\n", true, "deadline", "requested", "queue", "", 3, 0, 3, 5000,
		},
		"a deadline that takes more devices":                              {0, 4, "a,0,1000,1,1,8,600\nb,5,1000,2,1,8,900\n", true, "deadline", "elastic", "marginal", "", 2, 0, 2, 900},
		"an only node is taken away":                                      {0, 1, "a,0,14400,2,2,2,\nb,0,7200,2,2,2,\n", false, "accept_all", "requested", "queue", ", evictions: 2h", 2, 0, 0, 1e6},
		"jobs that fit at once with nodes to come":                        {1, 4, "a,0,3600,4,4,4,\nb,0,3600,4,4,4,\nc,0,3600,4,4,4,\n", true, "fits_all", "requested", "queue", "", 3, 0, 0, 3900},
		"who would fit with all nodes waits for them, others are dropped": {1, 4, "a,0,3600,4,4,4,\nb,0,3600,4,4,4,\nc,0,3600,4,4,4,\nd,0,600,8,8,8,\n", true, "fits_all, config: {misfits: drop}", "requested", "queue", "", 3, 1, 0, 3900},
		"more than all pools may have":                                    {1, 4, "a,0,1000,1,1,1,\nb,200,100,17,17,17,\n", false, "accept_all", "requested", "queue", "", 1, 1, 0, 1100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := filepath.Join(t.TempDir(), "jobs.csv")
			if err := os.WriteFile(trace, []byte(header+tc.rows), 0o644); err != nil {
				t.Fatal(err)
			}
			config := filepath.Join(t.TempDir(), "growing.yaml")
			text := fmt.Sprintf(doortest.GrowingPool, tc.start, tc.most, trace, tc.events, tc.admission, tc.replicas, tc.scaler, tc.world)
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := quartet.Load(quartet.Builtins(), configs.Options{Files: []string{config}, Env: os.LookupEnv})
			if err != nil {
				t.Fatal(err)
			}
			s := doortest.Simulate(t, c).Summary
			met := 0
			if s.Deadlines != nil {
				met = s.Deadlines.Met
			}
			if s.Jobs.Completed != tc.completed || s.Jobs.Rejected != tc.rejected || met != tc.met || float64(s.MakespanSeconds) > tc.makespan {
				t.Errorf("%+v, %d in time, in %v s", s.Jobs, met, s.MakespanSeconds)
			}
			if s.Bill == nil || float64(s.Bill.NodeHours)*3600 > float64(tc.most)*(float64(s.MakespanSeconds)+600) {
				t.Errorf("the bill is %+v", s.Bill)
			}
		})
	}
}

// A run whose pool never gets a node ends, says why, and leaves the jobs unfinished; where nodes come late, and not all of them, it says nothing.
func TestAPoolThatNeverGetsANode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		world string
		left  int
		want  []string
	}{
		"none comes":         {", fails: 1", 1, []string{"nodes of pools were asked for 5001 times while no job came further: the run is over at 125h"}},
		"one of three comes": {", fails: 0.66", 0, nil},
		"none for years":     {", provisioning_spread: 100000h, fails: 1", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := filepath.Join(t.TempDir(), "jobs.csv")
			if err := os.WriteFile(trace, []byte("name,submit_s,duration_s,replicas\na,0,100,1\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf(doortest.GrowingPool, 0, 1, trace, true, "accept_all", "requested", "queue", tc.world)
			c, err := quartet.Parse(quartet.Builtins(), "growing.yaml", text, quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			c.Note = func(text string) {
				if strings.Contains(text, "asked for") {
					got = append(got, text)
				}
			}
			r := doortest.Simulate(t, c)
			if len(r.Unfinished) != tc.left || r.Summary.Jobs.Unfinished != tc.left {
				t.Errorf("%d jobs are left, want %d", len(r.Unfinished), tc.left)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("noted %q, want %q", got, tc.want)
			}
		})
	}
}

// Without a scaler a pool is held to its least, and whoever is too large for what it begins with is told so at once: nobody has it grow.
func TestPoolsWithoutAScaler(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		least, start        int
		world, rows         string
		completed, rejected int
		available           string // devices, as those who are rejected are told
	}{
		"its least is held":                  {1, 1, ", evictions: 2h", "a,0,36000,1\nb,100,36000,4\n", 2, 0, ""},
		"of two":                             {2, 2, ", evictions: 2h, notice: 30m", "a,0,36000,8\nb,100,36000,4\n", 2, 0, ""},
		"and no more than it":                {1, 3, ", evictions: 2h", "a,0,1000000,4\nb,500000,100,5\n", 1, 1, "4"},
		"what never comes is not counted":    {1, 2, "", "a,0,100,8\nb,0,100,9\n", 1, 1, "8"},
		"nor of a pool that begins with one": {0, 1, "", "a,0,100,4\nb,0,100,16\n", 1, 1, "4"},
		"an only node that is not replaced":  {0, 1, ", evictions: 2h", "a,0,100,4\nb,500000,100,4\n", 0, 2, "0"}, // 0.4 s after the beginning
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := filepath.Join(t.TempDir(), "jobs.csv")
			if err := os.WriteFile(trace, []byte("name,submit_s,duration_s,replicas\n"+tc.rows), 0o644); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf(doortest.GrowingPool, tc.start, 4, trace, true, "accept_all", "requested", "none", tc.world)
			text = strings.Replace(text, "max: 4", fmt.Sprintf("min: %d, max: 4", tc.least), 1)
			c, err := quartet.Parse(quartet.Builtins(), "growing.yaml", strings.Replace(text, "write: []", "write: [decisions]", 1), quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.Dir, c.Keep = "", true
			r := doortest.Simulate(t, c)
			if n := r.Summary.Jobs; n.Completed != tc.completed || n.Rejected != tc.rejected {
				t.Errorf("%+v, want %d completed and %d rejected", n, tc.completed, tc.rejected)
			}
			for _, f := range r.Files {
				if f.File != "decisions.jsonl" {
					continue
				}
				rejected := 0
				for line := range strings.Lines(string(f.Content)) {
					if !strings.Contains(line, `"verdict":"reject"`) {
						continue
					}
					if rejected++; !strings.Contains(line, `"available":`+tc.available+",") {
						t.Errorf("%s, want %s available", line, tc.available)
					}
				}
				if rejected != tc.rejected {
					t.Errorf("%d rejections are told, want %d", rejected, tc.rejected)
				}
			}
		})
	}
}
