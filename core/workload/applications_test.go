package workload

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/refdata"
)

func TestApplications(t *testing.T) {
	profiles, err := Applications()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range profiles {
		names = append(names, p.Name)
		if _, err := applicationFiles.ReadFile(path.Join("applications", p.Name+".yaml")); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"}, names); diff != "" {
		t.Errorf("applications (-want +got):\n%s", diff)
	}
	models, err := tunedModels()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range polluxKinds {
		k := kind.value
		m := models[polluxTask{k.application, k.batch}]
		if m.Rate(0, Running{Shape: consolidated(k.replicas, 4), Replicas: k.replicas}) <= 0 {
			t.Errorf("%s does not run on %d replicas with a batch of %d", k.application, k.replicas, k.batch)
		}
	}
}

// The embedded profiles are what the command fits.
func TestApplicationsAreAsFitted(t *testing.T) {
	folder := refdata.Path(t, "data", "pollux-osdi21")
	names, err := FittedNames(folder)
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := Applications()
	if err != nil {
		t.Fatal(err)
	}
	var fitted []goodput.Profile
	for _, name := range names {
		p, err := FitApplication(t.Context(), folder, name)
		if err != nil {
			t.Fatal(err)
		}
		fitted = append(fitted, p)
	}
	if diff := cmp.Diff(fitted, profiles, cmpopts.EquateApprox(1e-3, 1e-7)); diff != "" {
		t.Errorf("profiles (-fitted +embedded):\n%s", diff)
	}
}

// measured is the files of an application whose step takes b/100 s and 0.1 s more with a second replica.
var measured = map[string]string{
	"placements.csv":    "placement,local_bsz,step_time,sync_time\n1,10,0.1,0.0\n1,20,0.2,0.0\n2,10,0.2,0.1\n2,20,0.3,0.1\n",
	"scalability.csv":   "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,6,10,0.4,0.3\n6,6,20,0.5,0.3\n",
	"validation-10.csv": "progress,iteration,metric,grad_sqr,grad_var\n50,50,0.1,1,4\n100,100,0.2,1,9\n",
	"validation-40.csv": "progress,iteration,metric,grad_sqr,grad_var\n51,20,0.1,2,8\n101,35,0.2,2,18\n",
}

func TestFitApplication(t *testing.T) {
	const scalability = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
	cases := map[string]struct {
		application string
		file, text  string // changed
		want        string
	}{
		"a number missing": {
			"app", "placements.csv", "placement,local_bsz,step_time,sync_time\n1,10,,0\n",
			`placements.csv:2:6: step_time is ""; expected a number of seconds above 0, at most 1e11`,
		},
		"nothing measured": {"app", "placements.csv", "placement,local_bsz,step_time,sync_time\n", `placements.csv: no rows; expected at least one`},
		"no number of nodes": {
			"app", "scalability.csv", scalability + "x,6,10,0.4,0.3\n", `scalability.csv:2:1: num_nodes is "x"; expected a whole number from 1 to 1048576`,
		},
		"more sync than step": {"app", "scalability.csv", scalability + "6,6,10,0.4,0.5\n", `scalability.csv:2:12: sync_time is "0.5"; expected less than the whole step`},
		"an empty training":   {"app", "validation-10.csv", "progress,iteration,metric,grad_sqr,grad_var\n", `validation-10.csv: no rows; expected at least one`},
		"no replicas that it can use": {
			"app", "placements.csv", "placement,local_bsz,step_time,sync_time\n44,10,0.2,0.1\n44,20,0.3,0.1\n", // eight share at most 40
			`no measurement lies within the limits of "app"`,
		},
	}
	write := func(t *testing.T, application, file, text string) string {
		t.Helper()
		folder := t.TempDir()
		traces := filepath.Join(folder, "traces", application)
		if err := os.MkdirAll(traces, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, content := range measured {
			if name == file {
				content = text
			}
			if err := os.WriteFile(filepath.Join(traces, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	t.Run("as measured", func(t *testing.T) {
		p, err := FitApplication(t.Context(), write(t, "app", "", ""), "app")
		if err != nil {
			t.Fatal(err)
		}
		p.Performance, p.Residuals.Pass, p.Residuals.Step = goodput.Performance{}, 0, 0
		want := goodput.Profile{
			Version: 1, Name: "app", MaxReplicas: 4, Epochs: 2, IterationsPerEpoch: 50,
			Batch:     goodput.BatchLimits{Initial: 10, Max: 40, MinPerDevice: 10, MaxPerDevice: 20},
			Noise:     []goodput.NoisePoint{{Progress: 0.25, Samples: 40}, {Progress: 0.75, Samples: 90}},
			Residuals: goodput.Residuals{Points: 4},
		}
		if diff := cmp.Diff(want, p, cmpopts.EquateApprox(1e-5, 1e-6)); diff != "" {
			t.Errorf("profile (-want +got):\n%s", diff)
		}
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := FitApplication(t.Context(), write(t, tc.application, tc.file, tc.text), tc.application)
			if err == nil || !strings.HasSuffix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
