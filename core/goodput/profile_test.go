package goodput

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func TestProfileRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawProfile(t)
		got, err := ReadProfile("p.yaml", want.YAML())
		if err != nil {
			t.Fatalf("%v\n%s", err, want.YAML())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("profile (-written +read):\n%s", diff)
		}
	})
}

func drawProfile(t *rapid.T) Profile {
	positive := rapid.Float64Range(1e-300, 1e300)
	p := Profile{
		Version: 1, Name: rapid.StringMatching(`[a-z][a-z0-9_-]{0,20}`).Draw(t, "name"),
		Epochs: rapid.IntRange(1, 1000000).Draw(t, "epochs"), MaxReplicas: rapid.IntRange(1, 1000000).Draw(t, "replicas"),
		IterationsPerEpoch: positive.Draw(t, "iterations"),
	}
	p.Batch.Initial, p.Batch.MinPerDevice = rapid.IntRange(1, 1000).Draw(t, "initial"), rapid.IntRange(1, 1000).Draw(t, "min")
	p.Batch.Max = p.Batch.Initial + rapid.IntRange(0, 1000000).Draw(t, "max")
	p.Batch.MaxPerDevice = p.Batch.MinPerDevice + rapid.IntRange(0, 1000000).Draw(t, "max per device")
	var v vector
	for i := range v {
		v[i] = positive.Draw(t, "parameter")
	}
	v[gamma] = rapid.Float64Range(1, 10).Draw(t, "gamma")
	p.Performance = performanceOf(v)
	step := 1 / float64(rapid.IntRange(1, 30).Draw(t, "points"))
	for at := 0.0; at <= 1; at += step {
		p.Noise = append(p.Noise, NoisePoint{Progress: at, Samples: rapid.Float64Range(0, 1e300).Draw(t, "noise")})
	}
	p.Residuals = Residuals{
		Points: rapid.IntRange(0, 1e6).Draw(t, "measured"), Pass: positive.Draw(t, "pass"), Step: positive.Draw(t, "step"), Gain: positive.Draw(t, "gain"),
	}
	return p
}

const validProfile = `version: 1
name: mine
batch: {initial: 10, max: 80, min_per_device: 5, max_per_device: 20}
max_replicas: 8
epochs: 4
iterations_per_epoch: 100
performance:
  alpha_grad: 1
  beta_grad: 0.1
  alpha_node: 4
  beta_node: 0.5
  alpha_local: 2
  beta_local: 0.25
  gamma: 1.5
noise:
  - {progress: 0.25, samples: 100}
  - {progress: 0.75, samples: 300}
`

const profileKeys = " valid keys: version, name, batch, max_replicas, epochs, iterations_per_epoch, performance, noise, sensitivity, residuals"

func TestProfileProblems(t *testing.T) {
	cases := map[string]struct {
		replace, with string
		want          string
	}{
		"none":                {"", "", ""},
		"unknown key":         {"epochs: 4", "epochs: 4\nepoch: 4", `p.yaml:6:1: epoch: unknown key; did you mean "epochs"?` + profileKeys},
		"missing key":         {"max_replicas: 8\n", "", `p.yaml:1:1: max_replicas: required but missing; most replicas that a job can use`},
		"missing in mapping":  {"initial: 10, ", "", `p.yaml:3:1: batch.initial: required but missing; total batch that the learning rate was tuned for`},
		"wrong type":          {"epochs: 4", "epochs: many", `p.yaml:5:1: epochs: expected a whole number, got text "many"`},
		"another version":     {"version: 1", "version: 2", `p.yaml:1:1: version: must be at most 1, got 2`},
		"name":                {"name: mine", `name: "My app"`, `p.yaml:2:1: name: "My app" is not of lower-case letters, digits, _ and -, a letter first`},
		"batches":             {"max: 80", "max: 8", `p.yaml:3:22: batch.max: must be at least batch.initial, 10`},
		"batches of a device": {"max_per_device: 20", "max_per_device: 2", `p.yaml:3:50: batch.max_per_device: must be at least batch.min_per_device, 5`},
		"no time":             {"alpha_grad: 1", "alpha_grad: 0", `p.yaml:8:3: performance.alpha_grad: must be above 0`},
		"too little overlap":  {"gamma: 1.5", "gamma: 0.5", `p.yaml:14:3: performance.gamma: must be at least 1, got 0.5`},
		"no iterations":       {"epoch: 100", "epoch: 0", `p.yaml:6:1: iterations_per_epoch: must be above 0`},
		"no noise":            {"\n  - {progress: 0.25, samples: 100}\n  - {progress: 0.75, samples: 300}", " []", `p.yaml:15:1: noise: must hold a point at least`},
		"noise backwards":     {"progress: 0.75", "progress: 0.25", `p.yaml:17:6: noise[1].progress: must be above that of the point before`},
		"noise beyond":        {"progress: 0.75", "progress: 1.75", `p.yaml:17:6: noise[1].progress: must be at most 1, got 1.75`},
		"noise not a number":  {"samples: 300", "samples: .nan", `p.yaml:17:22: noise[1].samples: expected a finite number, got NaN`},
		"duplicate key":       {"epochs: 4", "epochs: 4\nepochs: 5", `p.yaml:6: mapping key "epochs" already defined at line 5`},
		"syntax":              {"epochs: 4", "epochs: [4", `p.yaml:4: did not find expected ',' or ']'`},
		"two documents":       {"version", "a: 1\n---\nversion", `p.yaml: holds more than one document`},
		"not a mapping":       {validProfile, "- 1", `p.yaml:1: cannot unmarshal !!seq into map[string]interface {}`},
		"empty":               {validProfile, "", `p.yaml: is empty`},
		"all at once":         {"epochs: 4\niterations", "epochs: 0\niteration", "p.yaml:1:1: iterations_per_epoch: required but missing; optimizer steps of an epoch at the initial batch\n" + `p.yaml:5:1: epochs: must be at least 1, got 0` + "\n" + `p.yaml:6:1: iteration_per_epoch: unknown key; did you mean "iterations_per_epoch"?` + profileKeys},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := ReadProfile("p.yaml", []byte(strings.Replace(validProfile, tc.replace, tc.with, 1))); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Between 100 samples at a quarter and 300 at three quarters of four epochs, whose middles lie at 1/8, 3/8, 5/8, 7/8.
func TestNoiseCurve(t *testing.T) {
	p, err := ReadProfile("p.yaml", []byte(validProfile))
	if err != nil {
		t.Fatal(err)
	}
	for epoch, want := range []float64{100, 150, 250, 300} {
		if got := p.Gradients(epoch); got != (Gradients{SquaredNorm: 1, Variance: want / 10}) {
			t.Errorf("epoch %d: %+v, want a noise scale of %v samples", epoch, got, want)
		}
	}
	for progress, want := range map[float64]float64{0: 100, 0.25: 100, 0.5: 200, 0.75: 300, 1: 300} {
		if got := p.NoiseScale(progress); got != want {
			t.Errorf("at %v: %v samples, want %v", progress, got, want)
		}
	}
}

// An application that is as a profile says is found again from what it would measure.
func TestFitProfileFindsTheProfile(t *testing.T) {
	want, err := ReadProfile("p.yaml", []byte(validProfile))
	if err != nil {
		t.Fatal(err)
	}
	var seen []core.Measurement
	for _, b := range []int{2, 5, 8, 12, 20, 40} { // the first and the last are beyond the limits, and wrong
		for replicas := 1; replicas <= 8; replicas++ {
			for nodes := 1; nodes <= min(replicas, 2); nodes++ {
				m := core.Measurement{
					Nodes: nodes, Replicas: replicas, PerDevice: b, PassSeconds: want.Performance.GradTime(float64(b)),
					StepSeconds: want.Performance.StepTime(nodes, replicas, float64(b), 0),
				}
				if b == 2 || b == 40 {
					m.PassSeconds, m.StepSeconds = 50, 60
				}
				seen = append(seen, m)
			}
		}
	}
	var trainings []Training
	for _, batch := range []int{10, 40, 80} {
		training := Training{Batch: batch}
		for epoch := range want.Epochs {
			g := want.Gradients(epoch)
			g.SquaredNorm, g.Variance = 7*g.SquaredNorm, 7*g.Variance // the ratio counts
			training.Epochs = append(training.Epochs, Epoch{Progress: 100 * float64(epoch+1), Gradients: g})
		}
		trainings = append(trainings, training)
	}
	got, err := FitProfile("mine", want.Batch, 8, seen, trainings)
	if err != nil {
		t.Fatal(err)
	}
	if got.Residuals.Points != 60 || got.Residuals.Pass > 0.02 || got.Residuals.Step > 0.02 || got.Residuals.Gain > 1e-5 {
		t.Errorf("residuals %+v", got.Residuals)
	}
	for epoch := range want.Epochs {
		if g, w := got.NoiseScale(got.middle(epoch)), want.NoiseScale(want.middle(epoch)); math.Abs(g/w-1) > 1e-5 {
			t.Errorf("epoch %d: noise scale %v, want %v", epoch, g, w)
		}
	}
	got.Performance, got.Residuals, got.Noise = want.Performance, want.Residuals, want.Noise
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
}

func TestFitProfileNeedsSomethingToFitTo(t *testing.T) {
	limits := BatchLimits{Initial: 10, Max: 80, MinPerDevice: 5, MaxPerDevice: 20}
	seen := []core.Measurement{{Nodes: 1, Replicas: 1, PerDevice: 10, PassSeconds: 1, StepSeconds: 1}}
	trained := []Training{{Batch: 10, Epochs: []Epoch{{Progress: 1, Gradients: Gradients{SquaredNorm: 1, Variance: 1}}}}}
	cases := map[string]struct {
		seen      []core.Measurement
		trainings []Training
		want      string
	}{
		"no measurement":    {nil, trained, `no measurement lies within the limits of "mine"`},
		"too many replicas": {[]core.Measurement{{Nodes: 1, Replicas: 9, PerDevice: 10, PassSeconds: 1, StepSeconds: 2}}, trained, `no measurement lies within the limits of "mine"`},
		"no training":       {seen, nil, `no epoch of "mine" was recorded`},
		"no epoch":          {seen, []Training{{Batch: 10}}, `no epoch of "mine" was recorded`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := FitProfile("mine", limits, 8, tc.seen, tc.trainings); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	p, err := FitProfile("mine", limits, 8, seen, trained)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Errorf("one measurement and one epoch are not enough: %v", err)
	}
}

// A curve keeps a step in the noise however many epochs there are, and no more points than it may.
func TestFitNoiseKeepsSteps(t *testing.T) {
	const epochs = 200
	noise := func(epoch int) float64 {
		scale := 50 * math.Pow(1.01, float64(epoch))
		if epoch >= 123 {
			scale *= 5
		}
		return scale
	}
	p := Profile{Batch: BatchLimits{Initial: 10, Max: 640}, Epochs: epochs}
	var trainings []Training
	for _, batch := range []int{10, 80, 640} {
		training := Training{Batch: batch}
		for e := range epochs {
			training.Epochs = append(training.Epochs, Epoch{Gradients: Gradients{SquaredNorm: 1, Variance: noise(e) / 10}})
		}
		trainings = append(trainings, training)
	}
	p.fitNoise(trainings)
	if len(p.Noise) > noisePoints {
		t.Errorf("%d points", len(p.Noise))
	}
	for _, epoch := range []int{0, 60, 122, 123, 160, 199} {
		if got := p.NoiseScale(p.middle(epoch)); math.Abs(math.Log(got/noise(epoch))) > 0.01 {
			t.Errorf("epoch %d: noise scale %v, want %v", epoch, got, noise(epoch))
		}
	}
}

func FuzzReadProfile(f *testing.F) {
	f.Add([]byte(validProfile))
	f.Add([]byte("a: &x {b: *x}"))
	f.Add([]byte("noise: [1, {}]\nbatch: 3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ReadProfile("p.yaml", text)
		if err != nil {
			return
		}
		again, err := ReadProfile("p.yaml", p.YAML())
		if err != nil {
			t.Fatalf("%v\n%s", err, p.YAML())
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("profile (-read +written and read):\n%s", diff)
		}
	})
}

// The examples of the documentation are profiles.
func TestDocumentedProfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "profiles.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, example := range strings.Split(string(text), "```yaml\n")[1:] {
		example, _, _ = strings.Cut(example, "```")
		if !strings.Contains(example, "performance:") {
			continue // part of a config
		}
		examples++
		if _, err := ReadProfile("docs/profiles.md", []byte(example)); err != nil {
			t.Error(err)
		}
	}
	if examples == 0 {
		t.Error("no example")
	}
}
