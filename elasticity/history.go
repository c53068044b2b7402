package elasticity

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// pool is the experience of jobs that have run: what each application measured.
type pool struct {
	applications []*pastApplication // by name
	fresh        map[string]*pastApplication
	grew         bool // since it was read
}

// pastApplication is what is known of an application before a job of it starts.
type pastApplication struct {
	name        string
	limits      core.BatchSpec
	seen        []core.Measurement
	gradients   core.Gradients // at the start of training
	jobs        int            // that contributed
	replicas    int            // the most that were ever measured
	performance goodput.Performance

	confirmed, refuted int // by jobs of this run
}

// newPast fits an application to what was measured of it.
func newPast(name string, limits core.BatchSpec, seen []core.Measurement, g core.Gradients) *pastApplication {
	a := &pastApplication{name: name, limits: limits, seen: seen, gradients: g}
	for _, m := range seen {
		a.replicas = max(a.replicas, m.Replicas)
	}
	a.performance = goodput.Fit(seen, nil)
	return a
}

// find is what is known of a job's application: by its name, or else that of the application whose batch limits are
// nearest, if they are near at all.
func (p *pool) find(j *core.Job) *pastApplication {
	var nearest *pastApplication
	least := 1.0 // within a factor e over all limits
	for _, a := range p.applications {
		if a.name == j.Application {
			return a
		}
		if d := distance(a.limits, j.Batch); d < least {
			nearest, least = a, d
		}
	}
	return nearest
}

// distance compares batch limits, as the sum of the logarithms of their ratios.
func distance(a, b core.BatchSpec) float64 {
	sum := 0.0
	for _, pair := range [][2]int{{a.Initial, b.Initial}, {a.Max, b.Max}, {a.MinPerDevice, b.MinPerDevice}, {a.MaxPerDevice, b.MaxPerDevice}} {
		sum += math.Abs(math.Log(float64(max(pair[0], 1)) / float64(max(pair[1], 1))))
	}
	return sum
}

// add takes in what a job measured. It is for the runs that follow: what is known in this one does not change.
func (p *pool) add(a *agent) {
	if len(a.seen) == 0 {
		return
	}
	p.grew = true
	past := p.fresh[a.application]
	if past == nil {
		past = &pastApplication{name: a.application, limits: a.grid.Limits()}
		p.fresh[a.application] = past
	}
	n := float64(past.jobs)
	past.gradients.Square = (past.gradients.Square*n + a.first.Square) / (n + 1)
	past.gradients.Variance = (past.gradients.Variance*n + a.first.Variance) / (n + 1)
	past.jobs++
	for _, m := range a.seen {
		known := slices.ContainsFunc(past.seen, func(o core.Measurement) bool {
			return o.Nodes == m.Nodes && o.Replicas == m.Replicas && o.PerDevice == m.PerDevice
		})
		if !known && len(past.seen) < mostKept {
			past.seen = append(past.seen, m)
		}
	}
}

// mostKept bounds the measurements kept of an application.
const mostKept = 200

// The form of a pool on disk.
type (
	poolFile struct {
		Version      int               `yaml:"version"`
		Applications []applicationFile `yaml:"applications"`
	}
	applicationFile struct {
		Name      string           `yaml:"name"`
		Jobs      int              `yaml:"jobs"`
		Initial   int              `yaml:"initial_batch"`
		Max       int              `yaml:"max_batch"`
		MinDevice int              `yaml:"min_batch_per_device"`
		MaxDevice int              `yaml:"max_batch_per_device"`
		Square    float64          `yaml:"gradient_square"`
		Variance  float64          `yaml:"gradient_variance"`
		Measured  []measuredConfig `yaml:"measurements"`
	}
	measuredConfig struct {
		Nodes     int     `yaml:"nodes"`
		Replicas  int     `yaml:"replicas"`
		PerDevice int     `yaml:"batch_per_device"`
		Pass      float64 `yaml:"pass_seconds"`
		Step      float64 `yaml:"step_seconds"`
	}
)

// readPool reads a pool; one that does not exist is empty.
func readPool(path string) (*pool, error) {
	p := &pool{fresh: map[string]*pastApplication{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	var file poolFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, core.Diagnostics{{Position: core.Position{File: path}, Summary: strings.ReplaceAll(err.Error(), "\n", " ")}}
	}
	for _, f := range file.Applications {
		limits := core.BatchSpec{Initial: f.Initial, Max: f.Max, MinPerDevice: f.MinDevice, MaxPerDevice: f.MaxDevice}
		var seen []core.Measurement
		for _, m := range f.Measured {
			if m.Nodes < 1 || m.Replicas < 1 || m.PerDevice < 1 || !(m.Pass > 0) || !(m.Step >= m.Pass) || math.IsInf(m.Step, 1) {
				return nil, core.Diagnostics{{
					Position: core.Position{File: path}, Path: f.Name,
					Summary: "a measurement needs positive numbers, and a step as long as its pass",
				}}
			}
			seen = append(seen, core.Measurement{Nodes: m.Nodes, Replicas: m.Replicas, PerDevice: m.PerDevice, PassSeconds: m.Pass, StepSeconds: m.Step})
		}
		if len(seen) == 0 {
			continue
		}
		a := newPast(f.Name, limits, seen, core.Gradients{Square: f.Square, Variance: f.Variance})
		a.jobs = f.Jobs
		p.applications = append(p.applications, a)
		kept := *a
		kept.seen = slices.Clone(seen)
		p.fresh[f.Name] = &kept
	}
	return p, nil
}

// write replaces the file.
func (p *pool) write(path string) error {
	file := poolFile{Version: 1}
	names := make([]string, 0, len(p.fresh))
	for name := range p.fresh {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		a := p.fresh[name]
		f := applicationFile{
			Name: name, Jobs: a.jobs, Initial: a.limits.Initial, Max: a.limits.Max, MinDevice: a.limits.MinPerDevice,
			MaxDevice: a.limits.MaxPerDevice, Square: a.gradients.Square, Variance: a.gradients.Variance,
		}
		for _, m := range a.seen {
			f.Measured = append(f.Measured, measuredConfig{m.Nodes, m.Replicas, m.PerDevice, m.PassSeconds, m.StepSeconds})
		}
		file.Applications = append(file.Applications, f)
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return err
	}
	part := path + ".part"
	if err := os.WriteFile(part, text, 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}
