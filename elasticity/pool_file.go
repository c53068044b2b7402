package elasticity

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// The form of a pool on disk.
type (
	poolFile struct {
		Version      int               `config:"version" yaml:"version" required:"true" doc:"version of the format, 1 or 2"`
		Runs         int               `config:"runs" yaml:"runs" min:"0" max:"1000000000" doc:"runs that contributed"`
		Applications []applicationFile `config:"applications" yaml:"applications" doc:"what is known, by application"`
	}
	applicationFile struct {
		Name      string           `config:"name" yaml:"name" doc:"name of the application"`
		Run       int              `config:"run" yaml:"run,omitempty" min:"0" max:"1000000000" doc:"last run that contributed, counted from 1"`
		Jobs      int              `config:"jobs" yaml:"jobs" required:"true" min:"0" max:"1073741824" doc:"jobs whose measurements contributed"`
		Initial   int              `config:"initial_batch" yaml:"initial_batch" required:"true" min:"1" max:"1000000000" doc:"total batch that the learning rate was tuned for"`
		Max       int              `config:"max_batch" yaml:"max_batch" required:"true" min:"1" max:"1000000000" doc:"largest total batch that still trains"`
		MinDevice int              `config:"min_batch_per_device" yaml:"min_batch_per_device" min:"0" max:"1000000000" doc:"least batch of a device in a pass"`
		MaxDevice int              `config:"max_batch_per_device" yaml:"max_batch_per_device" min:"0" max:"1000000000" doc:"largest batch that a device holds"`
		Square    float64          `config:"gradient_square" yaml:"gradient_square" min:"0" max:"1e30" doc:"squared norm of the gradient, at the start of training"`
		Variance  float64          `config:"gradient_variance" yaml:"gradient_variance" min:"0" max:"1e30" doc:"its variance at the initial batch"`
		Endings   []endingConfig   `config:"endings" yaml:"endings,omitempty" doc:"how far jobs came, oldest first"`
		Measured  []measuredConfig `config:"measurements" yaml:"measurements" doc:"seconds by configuration"`
	}
	endingConfig struct {
		Work     float64 `config:"work" yaml:"work" required:"true" max:"1e30" doc:"work done, in iterations at the initial batch"`
		Seconds  float64 `config:"seconds" yaml:"seconds" required:"true" max:"1e30" doc:"seconds that the work takes on one device"`
		Finished bool    `config:"finished" yaml:"finished" doc:"whether the job was done, and not failed or cancelled"`
	}
	measuredConfig struct {
		Accelerator string  `config:"accelerator" yaml:"accelerator,omitempty" doc:"accelerator type of the devices; none where types make no difference"`
		Nodes       int     `config:"nodes" yaml:"nodes" required:"true" min:"1" max:"1000000" doc:"nodes that the replicas sat on"`
		Replicas    int     `config:"replicas" yaml:"replicas" required:"true" min:"1" max:"1000000" doc:"replicas"`
		PerDevice   int     `config:"batch_per_device" yaml:"batch_per_device" required:"true" min:"1" max:"1000000000" doc:"batch of a device in a pass"`
		Pass        float64 `config:"pass_seconds" yaml:"pass_seconds" required:"true" max:"1e9" doc:"seconds of a pass without synchronisation"`
		Step        float64 `config:"step_seconds" yaml:"step_seconds" required:"true" max:"1e9" doc:"seconds of a pass with it"`
		Count       int     `config:"count" yaml:"count,omitempty" min:"0" max:"1073741824" doc:"reports that it rests on; none is one"`
		Spread      float64 `config:"spread" yaml:"spread,omitempty" min:"0" max:"1e9" doc:"their typical distance from it, as a part of step_seconds"`
	}
)

// poolVersion is the version written. Version 1 has no endings, no counts and no runs.
const poolVersion = 2

// Validate reports what makes no sense together.
func (f poolFile) Validate() error {
	var problems []error
	if f.Version < 1 || f.Version > poolVersion {
		problems = append(problems, fmt.Errorf("version: the history is of version %d, and 1 to %d are read: name another file, or use the release that wrote it", f.Version, poolVersion))
	}
	seen := map[string]bool{}
	for i, a := range f.Applications {
		if seen[a.Name] {
			problems = append(problems, fmt.Errorf("applications[%d].name: %q appears twice", i, a.Name))
		}
		seen[a.Name] = true
		for k, e := range a.Endings {
			if !(e.Work > 0) || !(e.Seconds > 0) {
				problems = append(problems, fmt.Errorf("applications[%d].endings[%d]: work and seconds must be above 0", i, k))
			}
		}
		for k, m := range a.Measured {
			if !(m.Pass > 0) || !(m.Step >= m.Pass) {
				problems = append(problems, fmt.Errorf("applications[%d].measurements[%d]: pass_seconds must be above 0, and step_seconds no less", i, k))
			}
		}
	}
	return errors.Join(problems...)
}

// readPool reads a pool, and says what is to be known of it: one that does not exist, or is an empty file, is empty. Every
// problem of the file is reported at once.
func readPool(path string) (p *pool, note string, err error) {
	p = newPool()
	text, err := inputfile.Read(path, inputfile.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return p, "there is no such file yet", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the history: %w", err)
	}
	p.sha256 = fmt.Sprintf("%x", sha256.Sum256(text))
	if len(bytes.TrimSpace(text)) == 0 {
		return p, "the file is empty", nil
	}
	var file poolFile
	if err := yamlpos.Decode(path, text, &file); err != nil {
		return nil, "", err
	}
	p.runs = file.Runs
	for _, f := range file.Applications {
		p.applications = append(p.applications, f.application())
	}
	slices.SortFunc(p.applications, func(a, b *pastApplication) int { return cmp.Compare(a.name, b.name) })
	for _, a := range p.applications {
		p.proofs[a] = proof{}
		p.work.read(a.name, a.endings)
	}
	if len(p.applications) == 0 {
		note = "it holds no application"
	}
	return p, note, nil
}

// application is what a file says of one.
func (f *applicationFile) application() *pastApplication {
	var seen []core.Measurement
	for _, m := range f.Measured {
		seen = append(seen, core.Measurement{
			Accelerator: m.Accelerator, Nodes: m.Nodes, Replicas: m.Replicas, PerDevice: m.PerDevice,
			PassSeconds: m.Pass, StepSeconds: m.Step, Count: m.Count, Spread: m.Spread,
		})
	}
	limits := core.BatchSpec{Initial: f.Initial, Max: f.Max, MinPerDevice: f.MinDevice, MaxPerDevice: f.MaxDevice}
	a := newPast(f.Name, limits, seen, core.Gradients{SquaredNorm: f.Square, Variance: f.Variance})
	a.jobs, a.run = f.Jobs, f.Run
	for _, e := range f.Endings {
		a.endings = append(a.endings, ending{e.Work, e.Seconds, e.Finished})
	}
	return a
}

// write adds what this run learned to the file. It reads the file again under a lock, so that runs that write at once lose
// nothing of each other.
func (p *pool) write(path string) (err error) {
	if len(p.fresh) == 0 {
		return nil
	}
	unlock, err := lockFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"))
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	defer unlock()
	disk, _, err := readPool(path)
	if err != nil {
		return fmt.Errorf("write the history: what another run wrote meanwhile cannot be read: %w", err)
	}
	text, err := encode(disk.runs+1, p.merged(disk))
	if err != nil {
		return err
	}
	if err := replaceFile(path, text); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// encode is the text of a pool.
func encode(runs int, all []*pastApplication) ([]byte, error) {
	file := poolFile{Version: poolVersion, Runs: runs}
	for _, a := range all {
		f := applicationFile{
			Run: a.run, Jobs: a.jobs, Initial: a.limits.Initial, Max: a.limits.Max, MinDevice: a.limits.MinPerDevice,
			MaxDevice: a.limits.MaxPerDevice, Square: a.gradients.SquaredNorm, Variance: a.gradients.Variance,
		}
		for _, e := range a.endings {
			f.Endings = append(f.Endings, endingConfig{e.work, e.seconds, e.finished})
		}
		for _, m := range a.seen {
			accelerator := ""
			if m.Accelerator != "" {
				accelerator = "named below"
			}
			f.Measured = append(f.Measured, measuredConfig{accelerator, m.Nodes, m.Replicas, m.PerDevice, m.PassSeconds, m.StepSeconds, m.Count, m.Spread})
		}
		file.Applications = append(file.Applications, f)
	}
	var document yaml.Node
	if err := document.Encode(file); err != nil {
		return nil, err
	}
	for i, a := range document.Content[len(document.Content)-1].Content { // names may hold anything; the library breaks some that are not quoted
		quoted(a.Content[1], all[i].name)
		for k, m := range a.Content[len(a.Content)-1].Content {
			if name := all[i].seen[k].Accelerator; name != "" {
				quoted(m.Content[1], name)
			}
		}
	}
	return yaml.Marshal(&document)
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
