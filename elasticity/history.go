package elasticity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// pool is the experience of jobs that have run: what each application measured.
type pool struct {
	applications []*pastApplication          // as read, by name
	borrowed     map[kind]*pastApplication   // for jobs of applications that were never seen, that of the nearest one
	fresh        map[string]*pastApplication // what jobs of this run add
}

// kind is what tells jobs of unseen applications apart.
type kind struct {
	application string
	limits      core.BatchSpec
}

// pastApplication is what is known of an application before a job of it starts.
type pastApplication struct {
	name      string
	limits    core.BatchSpec
	seen      []core.Measurement
	gradients core.Gradients // at the start of training
	jobs      int            // that contributed
	replicas  int            // the most that were ever measured
	models    []pastModel

	confirmed, refuted int // by jobs of this run
}

// pastModel is a throughput model on an accelerator type.
type pastModel struct {
	accelerator string
	goodput.Performance
}

// newPast fits an application to what was measured of it.
func newPast(name string, limits core.BatchSpec, seen []core.Measurement, g core.Gradients) *pastApplication {
	a := &pastApplication{name: name, limits: limits, seen: seen, gradients: g}
	for _, m := range seen {
		a.replicas = max(a.replicas, m.Replicas)
	}
	for _, m := range seen {
		if a.on(m.Accelerator) == nil {
			a.models = append(a.models, pastModel{m.Accelerator, goodput.Fit(measuredOn(seen, m.Accelerator))})
		}
	}
	return a
}

// on is the model on an accelerator type; nil when nothing was measured there.
func (a *pastApplication) on(accelerator string) *goodput.Performance {
	for i := range a.models {
		if a.models[i].accelerator == accelerator {
			return &a.models[i].Performance
		}
	}
	return nil
}

// find is what is known of a job's application: by its name, or else that of the application whose batch limits are
// nearest, if they are near at all. What is borrowed is believed or refuted for itself, and not its owner's fault.
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
	if nearest == nil {
		return nil
	}
	k := kind{j.Application, j.Batch}
	k.limits.Requested = 0
	if p.borrowed[k] == nil {
		copied := *nearest
		copied.confirmed, copied.refuted = 0, 0
		p.borrowed[k] = &copied
	}
	return p.borrowed[k]
}

// believed tells whether not most jobs proved it wrong.
func (a *pastApplication) believed() bool { return a.refuted <= a.confirmed }

// distance compares batch limits, as the sum of the logarithms of their ratios.
func distance(a, b core.BatchSpec) float64 {
	sum := 0.0
	for _, pair := range [][2]int{{a.Initial, b.Initial}, {a.Max, b.Max}, {a.MinPerDevice, b.MinPerDevice}, {a.MaxPerDevice, b.MaxPerDevice}} {
		sum += math.Abs(math.Log(float64(max(pair[0], 1)) / float64(max(pair[1], 1))))
	}
	return sum
}

// The most that a pool takes, as the tags of its form say: sums and products of so much are finite.
const (
	mostGradient = 1e30
	mostSeconds  = 1e9
)

// sane tells whether a pool with what a job measured could be read again.
func sane(seen []core.Measurement, g core.Gradients) bool {
	part := func(x float64) bool { return x >= 0 && x <= mostGradient }
	return part(g.Square) && part(g.Variance) && !slices.ContainsFunc(seen, func(m core.Measurement) bool {
		return !(m.PassSeconds > 0 && m.PassSeconds <= m.StepSeconds && m.StepSeconds <= mostSeconds)
	})
}

// add takes in what a job measured. It is for the runs that follow: what is known in this one does not change.
func (p *pool) add(a *agent) {
	if len(a.seen) == 0 || !sane(a.seen, a.first) {
		return
	}
	fresh := p.fresh[a.application]
	if fresh == nil {
		fresh = &pastApplication{name: a.application, limits: a.limits}
		p.fresh[a.application] = fresh
	}
	fresh.join(&pastApplication{seen: a.seen, gradients: a.first, jobs: 1})
}

// join adds what others of the application measured. A configuration that both measured is as the others say.
func (a *pastApplication) join(o *pastApplication) {
	total := float64(a.jobs + o.jobs)
	share := float64(o.jobs) / total
	a.gradients.Square += share * (o.gradients.Square - a.gradients.Square)
	a.gradients.Variance += share * (o.gradients.Variance - a.gradients.Variance)
	a.jobs += o.jobs
	for _, m := range o.seen {
		at := slices.IndexFunc(a.seen, func(k core.Measurement) bool {
			return k.Accelerator == m.Accelerator && k.Nodes == m.Nodes && k.Replicas == m.Replicas && k.PerDevice == m.PerDevice
		})
		switch {
		case at >= 0:
			a.seen[at] = m
		case len(a.seen) < mostKept:
			a.seen = append(a.seen, m)
		}
	}
}

// mostKept bounds the measurements kept of an application.
const mostKept = 200

// merged is what was read together with what this run adds, by name. Of what jobs proved wrong nothing is kept.
func (p *pool) merged() []*pastApplication {
	all := maps.Clone(p.fresh)
	for _, a := range p.applications {
		fresh := p.fresh[a.name]
		if fresh != nil && !a.believed() {
			continue
		}
		kept := *a
		kept.seen = slices.Clone(a.seen)
		if fresh != nil {
			kept.limits = fresh.limits
			kept.join(fresh)
		}
		all[a.name] = &kept
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *pastApplication) int { return cmp.Compare(a.name, b.name) })
}

// The form of a pool on disk.
type (
	poolFile struct {
		Version      int               `config:"version" yaml:"version" required:"true" min:"1" max:"1" doc:"version of the format, 1"`
		Applications []applicationFile `config:"applications" yaml:"applications" doc:"what is known, by application"`
	}
	applicationFile struct {
		Name      string           `config:"name" yaml:"name" doc:"name of the application"`
		Jobs      int              `config:"jobs" yaml:"jobs" required:"true" min:"1" max:"1000000000" doc:"jobs that contributed"`
		Initial   int              `config:"initial_batch" yaml:"initial_batch" required:"true" min:"1" max:"1000000000" doc:"total batch that the learning rate was tuned for"`
		Max       int              `config:"max_batch" yaml:"max_batch" required:"true" min:"1" max:"1000000000" doc:"largest total batch that still trains"`
		MinDevice int              `config:"min_batch_per_device" yaml:"min_batch_per_device" min:"0" max:"1000000000" doc:"least batch of a device in a pass"`
		MaxDevice int              `config:"max_batch_per_device" yaml:"max_batch_per_device" min:"0" max:"1000000000" doc:"largest batch that a device holds"`
		Square    float64          `config:"gradient_square" yaml:"gradient_square" min:"0" max:"1e30" doc:"squared norm of the gradient, at the start of training"`
		Variance  float64          `config:"gradient_variance" yaml:"gradient_variance" min:"0" max:"1e30" doc:"its variance at the initial batch"`
		Measured  []measuredConfig `config:"measurements" yaml:"measurements" doc:"seconds by configuration"`
	}
	measuredConfig struct {
		Accelerator string  `config:"accelerator" yaml:"accelerator,omitempty" doc:"accelerator type of the devices; none where types make no difference"`
		Nodes       int     `config:"nodes" yaml:"nodes" required:"true" min:"1" max:"1000000" doc:"nodes that the replicas sat on"`
		Replicas    int     `config:"replicas" yaml:"replicas" required:"true" min:"1" max:"1000000" doc:"replicas"`
		PerDevice   int     `config:"batch_per_device" yaml:"batch_per_device" required:"true" min:"1" max:"1000000000" doc:"batch of a device in a pass"`
		Pass        float64 `config:"pass_seconds" yaml:"pass_seconds" required:"true" max:"1e9" doc:"seconds of a pass without synchronisation"`
		Step        float64 `config:"step_seconds" yaml:"step_seconds" required:"true" max:"1e9" doc:"seconds of a pass with it"`
	}
)

// Validate reports what makes no sense together.
func (f poolFile) Validate() error {
	var problems []error
	seen := map[string]bool{}
	for i, a := range f.Applications {
		if seen[a.Name] {
			problems = append(problems, fmt.Errorf("applications[%d].name: %q appears twice", i, a.Name))
		}
		seen[a.Name] = true
		for k, m := range a.Measured {
			if !(m.Pass > 0) || !(m.Step >= m.Pass) {
				problems = append(problems, fmt.Errorf("applications[%d].measurements[%d]: pass_seconds must be above 0, and step_seconds no less", i, k))
			}
		}
	}
	return errors.Join(problems...)
}

// readPool reads a pool; one that does not exist is empty. Every problem of the file is reported at once.
func readPool(path string) (*pool, error) {
	p := &pool{borrowed: map[kind]*pastApplication{}, fresh: map[string]*pastApplication{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	var file poolFile
	if err := goodput.DecodeYAML(path, text, &file); err != nil {
		return nil, err
	}
	for _, f := range file.Applications {
		var seen []core.Measurement
		for _, m := range f.Measured {
			seen = append(seen, core.Measurement{Accelerator: m.Accelerator, Nodes: m.Nodes, Replicas: m.Replicas, PerDevice: m.PerDevice, PassSeconds: m.Pass, StepSeconds: m.Step})
		}
		if len(seen) == 0 {
			continue
		}
		limits := core.BatchSpec{Initial: f.Initial, Max: f.Max, MinPerDevice: f.MinDevice, MaxPerDevice: f.MaxDevice}
		a := newPast(f.Name, limits, seen, core.Gradients{Square: f.Square, Variance: f.Variance})
		a.jobs = f.Jobs
		p.applications = append(p.applications, a)
	}
	return p, nil
}

// write replaces the file, if there is something new. Of two runs that end at once, the later one's stays, whole.
func (p *pool) write(path string) error {
	if len(p.fresh) == 0 {
		return nil
	}
	file, all := poolFile{Version: 1}, p.merged()
	for _, a := range all {
		f := applicationFile{
			Jobs: a.jobs, Initial: a.limits.Initial, Max: a.limits.Max, MinDevice: a.limits.MinPerDevice,
			MaxDevice: a.limits.MaxPerDevice, Square: a.gradients.Square, Variance: a.gradients.Variance,
		}
		for _, m := range a.seen {
			accelerator := ""
			if m.Accelerator != "" {
				accelerator = "named below"
			}
			f.Measured = append(f.Measured, measuredConfig{accelerator, m.Nodes, m.Replicas, m.PerDevice, m.PassSeconds, m.StepSeconds})
		}
		file.Applications = append(file.Applications, f)
	}
	var document yaml.Node
	if err := document.Encode(file); err != nil {
		return err
	}
	for i, a := range document.Content[3].Content { // names may hold anything; the library breaks some that are not quoted
		quoted(a.Content[1], all[i].name)
		for k, m := range a.Content[len(a.Content)-1].Content {
			if name := all[i].seen[k].Accelerator; name != "" {
				quoted(m.Content[1], name)
			}
		}
	}
	text, err := yaml.Marshal(&document)
	if err != nil {
		return err
	}
	if err := replaceFile(path, text); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

func quoted(n *yaml.Node, value string) { n.Value, n.Style = value, yaml.DoubleQuotedStyle }

// replaceFile puts a whole file in the place of another, so that a reader sees one or the other.
func replaceFile(path string, text []byte) (err error) {
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	_, err = part.Write(text)
	if err = errors.Join(err, part.Chmod(0o644), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}
