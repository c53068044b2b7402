package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// notesOf are the notes of a small config with other pipeline and rounds.
func notesOf(t *testing.T, rest string, sets ...string) (notes []string) {
	t.Helper()
	const config = "version: 1\ncluster: {sharing: none, nodes: [{name: n, count: 1, accelerator: t4, devices: 4}]}\nworkload: {type: generated}\n"
	c, err := quartet.Parse(quartet.Builtins(), "notes.yaml", config+rest, quartet.Options{Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Notes {
		notes = append(notes, n.String())
	}
	return notes
}

// Turns of slices that no round ends in time are told when a config is loaded, with the slice and the interval.
func TestTurnsWithoutAnIntervalAreNoted(t *testing.T) {
	const rest = "round: {interval: 60s, on_events: true}\npipeline: {allocation: {type: gandiva}}\n"
	const late = `notes.yaml:4:9: round.interval: turns end later than they should: "allocation/gandiva" has them end after `
	for name, tc := range map[string]struct {
		sets []string
		want []string
	}{
		"as long as the slice": {nil, nil},
		"shorter":              {[]string{"round.interval=10s"}, nil},
		"a longer slice":       {[]string{"pipeline.allocation.config.slice=10m"}, nil},
		"none":                 {[]string{"round.interval=0s"}, []string{`--set: round.interval: turns end only where something happens, and nothing may: "allocation/gandiva" has them end after 1m0s (pipeline.allocation.config.slice), and rounds have an interval of 0s, which is none; set round.interval to 1m0s or less`}},
		"a shorter slice":      {[]string{"pipeline.allocation.config.slice=59s"}, []string{late + `59s (pipeline.allocation.config.slice), and rounds are held every 1m0s; set round.interval to 59s or less, or pipeline.allocation.config.slice to the interval or more`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, notesOf(t, rest, append(tc.sets, "cluster.sharing=timeslice")...)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// Deadlines that nobody plans for, or that are planned with less than changes cost, are told when a config is loaded, with both figures.
func TestPromisesThatBreakAreNoted(t *testing.T) {
	const rest = `round: {interval: 60s}
pipeline:
  admission: [{type: accept_all}, {type: deadline, config: {overhead: 30s}}]
  allocation: {type: elasticflow, config: {overhead: 30s}}
  elasticity: {job: {type: fixed, config: {replicas: elastic}}}
backend: {type: simulator, config: {restart_overhead: 30s}}
`
	const (
		admitted  = `notes.yaml:6:61: pipeline.admission[1].config.overhead: promises of deadlines may be broken: "admission/deadline" counts 30s for a change of devices, and a start takes up to `
		allocated = `notes.yaml:7:44: pipeline.allocation.config.overhead: promises of deadlines may be broken: "allocation/elasticflow" counts 30s for a change of devices, and a start takes up to `
		toAdmit   = `; set pipeline.admission[1].config.overhead to `
		toGive    = `; set pipeline.allocation.config.overhead to `
	)
	for name, tc := range map[string]struct {
		sets []string
		want []string
	}{
		"as much":         {nil, nil},
		"more than it is": {[]string{"backend.config.restart_overhead=29s"}, nil},
		"nothing":         {[]string{"backend.config.restart_overhead=0s"}, nil},
		"less": {[]string{"backend.config.restart_overhead=31s"}, []string{
			admitted + "31s (backend.config.restart_overhead)" + toAdmit + "31s", allocated + "31s (backend.config.restart_overhead)" + toGive + "31s",
		}},
		"a delay": {[]string{"backend.config.start_delay=270s"}, []string{
			admitted + "5m0s (backend.config.start_delay + backend.config.restart_overhead)" + toAdmit + "5m0s",
			allocated + "5m0s (backend.config.start_delay + backend.config.restart_overhead)" + toGive + "5m0s",
		}},
		"an application": {[]string{"backend.config.application_overhead=[{application: a, overhead: 40s}]", "pipeline.allocation.config.overhead=40s"}, []string{
			admitted + "40s (backend.config.application_overhead[0].overhead)" + toAdmit + "40s",
		}},
		"no plans": {[]string{"pipeline.allocation={type: fifo}"}, []string{
			`--set: pipeline.allocation.type: promises of deadlines may be broken: "admission/deadline" promises by its plans, and "allocation/fifo" keeps none; take elasticflow`,
		}},
		"nobody promises": {[]string{"pipeline.admission=[]", "backend.config.restart_overhead=10m"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, notesOf(t, rest, tc.sets...)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// Allocations that count whole devices where jobs have parts are told of, with those that count parts.
func TestAllocationsThatCountWholeDevicesAreNoted(t *testing.T) {
	note := func(at, who string) []string {
		return []string{at + `: pipeline.allocation.type: jobs have parts of devices, and "allocation/` + who + `" counts whole ones: it grants no more jobs than would fit if each had its devices alone; ` +
			"allocations that count parts: drf, fifo, ftf, las, srtf, tetris, tiresias"}
	}
	for name, tc := range map[string]struct {
		sharing, allocation string
		want                []string
	}{
		"whole devices":               {"none", "optimus", nil},
		"turns":                       {"timeslice", "antman", nil},
		"parts, counted whole":        {"fractional", "optimus", note("notes.yaml:4:25", "optimus")},
		"slices, counted whole":       {"mig", "afs", note("notes.yaml:4:25", "afs")},
		"parts, counted":              {"fractional", "las", nil},
		"parts, counted, and all are": {"fractional", "{type: fifo, config: {queue: all}}", nil},
		"slices, counted":             {"mig", "tiresias", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := tc.allocation
			if a[0] != '{' {
				a = "{type: " + a + "}"
			}
			rest := "pipeline: {allocation: " + a + ", placement: {type: " + map[bool]string{true: "antman", false: "first_fit"}[tc.sharing == "timeslice"] + "}}\n"
			if tc.sharing == "fractional" || tc.sharing == "mig" {
				rest = "pipeline: {allocation: " + a + ", placement: {type: fgd}}\n"
			}
			if diff := cmp.Diff(tc.want, notesOf(t, rest, "cluster.sharing="+tc.sharing)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// Settings that are for another way of sharing are told of, and those of the way that there is are not.
func TestSettingsThatDoNothingAreNoted(t *testing.T) {
	const fifo = "pipeline: {allocation: {type: fifo}}\n"
	const owners = "--set: cluster.max_owners: does nothing: it is for jobs that take turns, and cluster.sharing is %s; leave it out, or set cluster.sharing to timeslice"
	const memory = "--set: cluster.oversubscribe_memory: does nothing: it is for jobs that take turns, and cluster.sharing is %s; leave it out, or set cluster.sharing to timeslice"
	const cells = "tenants: [{name: x, cells: [{level: node, count: 1}]}]"
	const zone = cells + ", levels: [{name: zone, nodes: 3}]"
	const model = "--set: backend.config.co_location.model: hinge does nothing: it is for jobs on a device together, and cluster.sharing is none; leave it out, or set cluster.sharing"
	for name, tc := range map[string]struct {
		rest string
		sets []string
		want []string
	}{
		"owners of whole devices": {fifo, []string{"cluster.max_owners=3"}, []string{fmt.Sprintf(owners, "none")}},
		"as many as by default":   {fifo, []string{"cluster.max_owners=2"}, nil},
		"memory of whole devices": {fifo, []string{"cluster.oversubscribe_memory=true"}, []string{fmt.Sprintf(memory, "none")}},
		"not oversubscribed":      {fifo, []string{"cluster.oversubscribe_memory=false"}, nil},
		"parts": {
			"pipeline: {allocation: {type: fifo}, placement: {type: fgd}}\n",
			[]string{"cluster.sharing=fractional", "cluster.max_owners=3", "cluster.oversubscribe_memory=true"},
			[]string{fmt.Sprintf(owners, "fractional"), fmt.Sprintf(memory, "fractional")},
		},
		"parts that slow down": {"pipeline: {allocation: {type: fifo}, placement: {type: fgd}}\n", []string{"cluster.sharing=fractional", "backend.config.co_location.model=hinge"}, nil},
		"turns": {
			"pipeline: {allocation: {type: antman}, placement: {type: antman}}\n",
			[]string{"cluster.sharing=timeslice", "cluster.max_owners=3", "cluster.oversubscribe_memory=true", "backend.config.co_location.model=turns"},
			nil,
		},
		"whole devices that slow down":  {fifo, []string{"backend.config.co_location.model=hinge"}, []string{model}},
		"whole devices as fast as ever": {fifo, []string{"backend.config.co_location.model=none"}, nil},
		"cells that nobody keeps": {
			"pipeline: {admission: [{type: virtual_clusters, config: {" + cells + "}}], allocation: {type: fifo}, placement: {type: first_fit}}\n", nil,
			[]string{`notes.yaml:4:25: pipeline.admission[0].type: "admission/virtual_clusters" admits jobs to cells that no placement reserves for them: "placement/first_fit" seats them anywhere; take the placement cells, with the same tenants`},
		},
		"a level larger than the cluster": {
			"pipeline: {admission: [{type: virtual_clusters, config: {" + zone + "}}], allocation: {type: fifo}, placement: {type: cells, config: {" + zone + "}}}\n", nil,
			[]string{`notes.yaml:4:289: pipeline.placement.config.levels[0].nodes: there is no cell of level "zone": it has 3 nodes, and no accelerator type more than 1; leave it out, or set 1 or fewer`},
		},
		"cells that are kept": {"pipeline: {admission: [{type: virtual_clusters, config: {" + cells + "}}], allocation: {type: fifo}, placement: {type: cells, config: {" + cells + "}}}\n", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, notesOf(t, tc.rest, tc.sets...)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// Jobs that ask for parts or slices which the cluster does not give are told of, with how many they are and by which column.
func TestSharesThatNobodyGivesAreNoted(t *testing.T) {
	const parts = "%d of 4 jobs ask for parts of devices (share_milli), and have whole ones: cluster.sharing is %s; parts are given by fractional, and slices by mig"
	const slice = "1 of 4 jobs ask for slices (mig_profile), which cluster.sharing: %s does not give; mig does"
	for name, tc := range map[string]struct {
		sharing, allocation, placement string
		want                           []string
	}{
		"none":       {"none", "fifo", "first_fit", []string{fmt.Sprintf(parts, 2, "none"), fmt.Sprintf(slice, "none")}},
		"fractional": {"fractional", "fifo", "fgd", []string{fmt.Sprintf(slice, "fractional")}},
		"timeslice":  {"timeslice", "antman", "antman", []string{fmt.Sprintf(parts, 2, "timeslice"), fmt.Sprintf(slice, "timeslice")}},
		"mig":        {"mig", "fifo", "fgd", nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.csv")
			put(t, path, "name,submit_s,duration_s,replicas,share_milli,mig_profile\na,0,10,1,250,\nb,0,10,1,0,\nc,0,10,1,1000,\nd,0,10,1,,3g\n")
			s := doortest.Small()
			s.Cluster.Sharing = tc.sharing
			s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": path}}
			s.Pipeline.Allocation, s.Pipeline.Placement = quartet.Policy{Type: tc.allocation}, quartet.Policy{Type: tc.placement}
			var notes []string
			c := doortest.Compose(t, quartet.Builtins(), s)
			c.Note = func(text string) {
				if strings.Contains(text, "jobs ask for") {
					notes = append(notes, text)
				}
			}
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
