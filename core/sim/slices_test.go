package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// on is a start of a job at a moment, on a device of the first node, with a slice that begins there.
func on(job core.JobID, devices core.DeviceSet, starts ...uint8) core.Change {
	c := start(job, seats(0, devices))
	c.Slices = starts
	return c
}

// Jobs are as fast as their slices are large, or as was measured, whoever is beside them; a device is divided anew where a slice is needed that it is not
// divided into.
func TestJobsOnSlices(t *testing.T) {
	t.Parallel()
	of := func(work float64, profile string) workload.Job {
		spec := core.JobSpec{Weight: 1, TotalWork: work, Utilisation: 1, Application: "bert"}
		if profile != "" {
			spec.Share = &core.Share{Milli: core.WholeDevice, Profile: profile}
		}
		return workload.Job{Spec: spec, Model: phased{work}}
	}
	parts := of(60, "")
	parts.Spec.Share = &core.Share{Milli: 200}
	alone := of(60, "")
	alone.Spec.Share = &core.Share{}
	pause := Mig{Power: 1, Repartition: 10 * time.Second}
	measured := Mig{Power: 1, Rates: []SliceRate{{Profile: "1g", Rate: 0.25}, {Application: "bert", Profile: "1g", Rate: 0.5}, {Application: "ncf", Profile: "2g", Rate: 1}, {Profile: "3g", Rate: 0.6}}}
	for name, tc := range map[string]struct {
		config  Mig
		jobs    []workload.Job
		changes map[float64][]core.Change
		want    map[core.JobID]float64
	}{
		"by compute slices": {
			Mig{Power: 1},
			[]workload.Job{of(60, "1g"), of(60, "2g"), of(60, "3g"), of(60, ""), of(60, "4g")},
			map[float64][]core.Change{0: {on(0, 1, 0), on(1, 1, 2), on(2, 1, 4), on(3, 2, 0), on(4, 4, 0)}},
			map[core.JobID]float64{0: 420, 1: 210, 2: 140, 3: 60, 4: 105},
		},
		"to a power": {
			Mig{Power: 0.5},
			[]workload.Job{of(60, "1g"), of(60, "7g")},
			map[float64][]core.Change{0: {on(0, 1, 0), on(1, 2, 0)}},
			map[core.JobID]float64{0: 60 * math.Sqrt(7), 1: 60},
		},
		"measured on the slice": {Mig{}, []workload.Job{of(60, "1g")}, map[float64][]core.Change{0: {on(0, 1, 0)}}, map[core.JobID]float64{0: 60}},
		"measured rates": {
			measured,
			[]workload.Job{of(60, "1g"), of(60, "2g"), of(60, "3g")},
			map[float64][]core.Change{0: {on(0, 1, 0), on(1, 1, 2), on(2, 1, 4)}},
			map[core.JobID]float64{0: 120, 1: 210, 2: 100},
		},
		"thousandths of a device, and none": {
			Mig{Power: 1}, []workload.Job{parts, alone}, map[float64][]core.Change{0: {on(0, 1, 0), on(1, 1)}}, map[core.JobID]float64{0: 210, 1: 60},
		},
		"a gang":                        {Mig{Power: 1}, []workload.Job{of(60, "1g")}, map[float64][]core.Change{0: {on(0, 3, 0, 6)}}, map[core.JobID]float64{0: 210}},
		"whole devices are not divided": {pause, []workload.Job{of(60, "")}, map[float64][]core.Change{0: {on(0, 1, 0)}}, map[core.JobID]float64{0: 60}},
		"the first slice":               {pause, []workload.Job{of(60, "1g")}, map[float64][]core.Change{0: {on(0, 1, 0)}}, map[core.JobID]float64{0: 430}},
		"a gang pauses once":            {pause, []workload.Job{of(60, "1g")}, map[float64][]core.Change{0: {on(0, 3, 0, 0)}}, map[core.JobID]float64{0: 220}},
		"a slice that is there already": {
			pause,
			[]workload.Job{of(60, "1g"), of(60, "1g")},
			map[float64][]core.Change{0: {on(0, 1, 0)}, 100: {stop(0), on(1, 1, 0)}},
			map[core.JobID]float64{1: 520},
		},
		"a slice beside it": {
			pause,
			[]workload.Job{of(60, "1g"), of(60, "2g")},
			map[float64][]core.Change{0: {on(0, 1, 0)}, 100: {on(1, 1, 2)}},
			map[core.JobID]float64{0: 430, 1: 320},
		},
		"divided anew, and again": {
			pause,
			[]workload.Job{of(60, "1g"), of(60, "2g"), of(60, "1g")},
			map[float64][]core.Change{0: {on(0, 1, 1)}, 100: {stop(0), on(1, 1, 0)}, 150: {stop(1), on(2, 1, 1)}},
			map[core.JobID]float64{2: 580},
		},
		"in one piece again": {
			pause,
			[]workload.Job{of(60, "1g"), of(60, "7g"), of(60, "")},
			map[float64][]core.Change{0: {on(0, 1, 1)}, 100: {stop(0), on(1, 1, 0)}, 150: {stop(1), on(2, 1, 0)}},
			map[core.JobID]float64{2: 210},
		},
		"it is not known where": {pause, []workload.Job{of(60, "1g")}, map[float64][]core.Change{0: {on(0, 1, core.NoSlice)}}, map[core.JobID]float64{0: 420}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &core.Cluster{Accelerators: []string{"a100"}, Sharing: core.Mig, Nodes: []core.Node{{Name: "n", Devices: 3}}}
			w := &workload.Workload{}
			for i, job := range tc.jobs {
				job.Spec.ID = core.JobID(i)
				w.Jobs = append(w.Jobs, job)
			}
			b, err := (&opener{config: Config{Mig: tc.config, StallAfter: time.Hour}, settings: core.Settings{ID: "backend/simulator"}}).Open(t.Context(), cluster, w)
			if err != nil {
				t.Fatal(err)
			}
			ends := map[core.JobID]float64{}
			for _, now := range []float64{0, 100, 150, 1000} {
				seen, err := b.Next(t.Context(), by(now, 0))
				if err != nil {
					break
				}
				for {
					for _, e := range seen.Events {
						if e.Kind == core.JobFinished {
							ends[e.Job] = e.AtSeconds
						}
					}
					if seen.NowSeconds >= now {
						break
					}
					if seen, err = b.Next(t.Context(), by(now, 0)); err != nil {
						break
					}
				}
				if err := b.Apply(t.Context(), tc.changes[now]); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, ends, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsOfSlices(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config  Config
		sharing core.Sharing
		want    string // part of the problem; "" for none
	}{
		"none":                        {Config{}, core.Mig, ""},
		"all of them":                 {Config{Mig: Mig{Repartition: time.Second, Rates: []SliceRate{{Profile: "1g", Rate: 1}, {Application: "a", Profile: "1g", Rate: 1}}}}, core.Mig, ""},
		"a pause, of whole devices":   {Config{Mig: Mig{Repartition: time.Second}}, core.Fractional, "mig: needs cluster.sharing: mig"},
		"rates, of whole devices":     {Config{Mig: Mig{Rates: []SliceRate{{Profile: "1g", Rate: 1}}}}, core.Exclusive, "mig: needs cluster.sharing: mig"},
		"neighbours that are noticed": {Config{CoLocation: CoLocation{Model: "hinge"}}, core.Mig, "co_location.model: hinge does not go with cluster.sharing: mig"},
		"neighbours that are not":     {Config{CoLocation: CoLocation{Model: "none"}}, core.Mig, ""},
		"neighbours elsewhere":        {Config{CoLocation: CoLocation{Model: "hinge"}}, core.Fractional, ""},
		"a profile twice":             {Config{Mig: Mig{Rates: []SliceRate{{Profile: "1g", Rate: 1}, {Profile: "1g", Rate: 2}}}}, core.Mig, `mig.rates[1]: 1g of application "" is listed twice`},
		"a rate of 0":                 {Config{Mig: Mig{Rates: []SliceRate{{Profile: "2g"}}}}, core.Mig, "mig.rates[0].rate: must be at least 1e-06, got 0"},
		"no profile":                  {Config{Mig: Mig{Rates: []SliceRate{{Rate: 1}}}}, core.Mig, "mig.rates[0].profile: must be one of 1g"},
		"a pause without end":         {Config{Mig: Mig{Repartition: time.Hour}}, core.Mig, "mig.repartition: must be shorter than stall_after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.config.StallAfter = time.Hour
			problems := ""
			if err := tc.config.Validate(); err != nil {
				problems = err.Error()
			}
			for _, d := range tc.config.checkMig(tc.sharing) {
				problems += d.Path + ": " + d.Summary
			}
			if tc.want == "" && problems != "" || !strings.Contains(problems, tc.want) {
				t.Errorf("problems %q, want %q", problems, tc.want)
			}
		})
	}
}
