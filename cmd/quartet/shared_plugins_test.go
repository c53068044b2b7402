package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/placement"
	"github.com/quartet-sched/quartet/plugins/loopback"
	"github.com/quartet-sched/quartet/plugins/sdk"
)

// testPolicies are what the test binary serves beside the built-ins.
func testPolicies() []sdk.Factory {
	taking := func(info core.Info) core.Factory[core.Placer] {
		info.Summary, info.Description = "seats jobs on the first free devices", "first_fit under another name"
		return core.NewFactory(info, core.None{}, func(_ core.None, s core.Settings) (core.Placer, error) {
			f := placement.NewFirstFit()
			config, _ := f.Decode(nil)
			return f.New(config, s)
		})
	}
	return []sdk.Factory{
		newPairs(), taking(core.Info{Type: "taking_turns", Sharing: []core.Sharing{core.TimeSlice}, Counts: true}), taking(core.Info{Type: "telling_nothing"}),
	}
}

// newPairs is an allocator that puts each job and the next one that asks for as many replicas on the same devices.
func newPairs() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type: "pairs", Summary: "pairs equal jobs", Description: "grants jobs what they request, two of a size on the same devices", Sharing: []core.Sharing{core.TimeSlice},
	}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) { return pairs{}, nil })
}

type pairs struct{}

func (pairs) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	var grants []core.Grant
	left, group := slices.Clone(candidates), 0
	for len(left) > 0 {
		first := left[0]
		left = left[1:]
		grant := core.Grant{Job: first.ID, Accelerator: core.AnyAccelerator, Replicas: first.Requested}
		if other := slices.IndexFunc(left, func(c core.Candidate) bool { return c.Requested == first.Requested }); other >= 0 {
			group++
			grant.Group = group
			grants = append(grants, grant)
			grant.Job = left[other].ID
			left = slices.Delete(left, other, other+1)
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// Standing is for ever: the answer depends on who competes alone.
func (pairs) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

// sharingJobs writes a trace of jobs that ask for little, some of them for parts of devices, and returns its path.
func sharingJobs(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("name,submit_s,duration_s,replicas,share_milli,cpus,memory_gb,utilisation,device_memory_gb,slowdown_tolerance\n")
	for i := range 60 {
		share := []string{"", "250", "500", "700", "0"}[i%5]
		replicas := 1 + i%3/2 + i%7/6
		fmt.Fprintf(&rows, "j%d,%d,%d,%d,%s,%d,%d,0.%d,%d,0.1\n", i, 97*i, 300+i*i%1000, replicas, share, 1+i%4, 4*(1+i%5), 1+i%9, 2+i%6)
	}
	path := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(path, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sharingConfig is a config of a cluster that shares its devices.
func sharingConfig(cluster, pipeline, path string) string {
	memory := 0
	if strings.Contains(cluster, "timeslice") {
		memory = 16
	}
	return fmt.Sprintf(`version: 1
name: shared
seed: 3
cluster: {%s, nodes: [{name: n, count: 2, accelerator: t4, devices: 3, cpus: 10, memory_gb: 48, device_memory_gb: %d}]}
workload: {type: csv, config: {path: %s}}
round: {interval: 60s}
pipeline: {%s}
backend: {type: simulator, config: {restart_overhead: 10s, co_location: {model: hinge}, failures: {mtbf: 2h, repair: 10m}}}
`, cluster, memory, path, pipeline)
}

// Policies that share devices come to the same bytes in this process, over the wire, and in a process of their own.
func TestSharedDevicesThroughTheWire(t *testing.T) {
	path := sharingJobs(t)
	c := catalog()
	c.Allocation = append(slices.Clone(c.Allocation), newPairs())
	for name, tc := range map[string]struct{ cluster, pipeline string }{
		"parts, by fragments": {"sharing: fractional, count_resources: true", "allocation: {type: fifo, config: {queue: all}}, placement: {type: fgd}"},
		"parts, best fit":     {"sharing: fractional", "allocation: {type: las, config: {queue: all}}, placement: {type: best_fit}"},
		"pairs, consolidated": {"sharing: timeslice", "allocation: {type: pairs}, placement: {type: consolidated}"},
		"pairs, first fit":    {"sharing: timeslice, max_owners: 3, oversubscribe_memory: true", "allocation: {type: pairs}, placement: {type: first_fit}"},
		"counted resources":   {"count_resources: true", "allocation: {type: fifo, config: {queue: all}}, placement: {type: best_fit}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := configs.Parse(c, "shared.yaml", []byte(sharingConfig(tc.cluster, tc.pipeline, path)), configs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := quartet.LoadWorkload(t.Context(), config, nil)
			if err != nil {
				t.Fatal(err)
			}
			direct, err := engine.BuildStages(config, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := filesOf(t, config, jobs, direct)
			if shared := strings.Contains(want[2], `"with":["`); shared == (name == "counted resources") {
				t.Errorf("jobs are together on devices: %v", shared)
			}
			for label, by := range map[string]way{"in memory": loopback.Dial, "own process": ownProcess} {
				got := filesOf(t, config, jobs, remoteStages(t, by, config))
				for i, file := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
					if diff := cmp.Diff(strings.Split(want[i], "\n"), strings.Split(got[i], "\n")); diff != "" {
						t.Errorf("%s: %s (-here +there)\n%s", label, file, diff)
					}
				}
			}
		})
	}
}

// What an installed plugin says that it counts decides whether a config takes it.
func TestAPluginSaysWhatItCounts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shared"), []byte("#!/bin/sh\nexec '"+os.Args[0]+"' "+serveArgument+" "+testPoliciesID+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	must(t, dir, "quartet", "plugin", "install", "--dir", "plugins", "./shared")
	path := sharingJobs(t)
	const unsaid = ": its plugin does not say that it counts that; placements that do: "
	for name, tc := range map[string]struct{ cluster, allocation, placement, want string }{
		"turns, all say so":      {"sharing: timeslice", "{type: pairs}", "{type: taking_turns}", ""},
		"turns and resources":    {"sharing: timeslice, count_resources: true", "{type: pairs}", "{type: taking_turns}", ""},
		"resources":              {"count_resources: true", "{type: las}", "{type: taking_turns}", ""},
		"whole devices":          {"sharing: none", "{type: las}", "{type: telling_nothing}", ""},
		"parts":                  {"sharing: fractional", "{type: las}", "{type: taking_turns}", `pipeline.placement.type: "placement/taking_turns" does not go with cluster.sharing: fractional` + unsaid + "fgd, "},
		"turns, nothing is said": {"sharing: timeslice", "{type: las}", "{type: telling_nothing}", `pipeline.placement.type: "placement/telling_nothing" does not go with cluster.sharing: timeslice` + unsaid},
		"resources, unsaid":      {"count_resources: true", "{type: las}", "{type: telling_nothing}", `pipeline.placement.type: "placement/telling_nothing" does not go with cluster.count_resources` + unsaid + "fgd, "},
		"a fallback that does not": {
			"sharing: timeslice", "{type: pairs}", "{type: taking_turns, plugin: {on_failure: fallback, fallback: {type: buddy}}}",
			`pipeline.placement.plugin.fallback.type: "placement/buddy" does not go with cluster.sharing: timeslice; placements that do: `,
		},
		"a fallback that does": {"sharing: timeslice", "{type: pairs}", "{type: taking_turns, plugin: {on_failure: fallback, fallback: {type: first_fit}}}", ""},
		"an allocator that needs turns": {
			"sharing: none", "{type: pairs}", "{type: first_fit}",
			`pipeline.allocation.type: "allocation/pairs" has jobs share devices, which cluster.sharing: none does not let them; ways of sharing that do: timeslice`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := sharingConfig(tc.cluster, "allocation: "+tc.allocation+", placement: "+tc.placement, path)
			if err := os.WriteFile(filepath.Join(dir, "shared.yaml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.Command("quartet", "config", "validate", "-f", "shared.yaml", "--plugin-dir", "plugins")
			command.Dir = dir
			said, err := command.CombinedOutput()
			if (err == nil) != (tc.want == "") || !strings.Contains(string(said), tc.want) {
				t.Errorf("error %v:\n%s\nwant %q", err, said, tc.want)
			}
		})
	}
}
