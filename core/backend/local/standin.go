package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/workload"
)

// A job of a trace has no command: something stands in for it. That is the command that the config names, or else this very
// program, which goes as the model says that the simulator goes by.

// standInVariable makes a program that calls StandInIfAsked a stand-in that goes by the file it names.
const standInVariable = "QUARTET_STAND_IN"

const (
	paceFile    = "pace.json"    // of a run
	profileFile = "profile.yaml" // of a job
)

// pace is how a job goes on the devices and with the batch that it has.
type pace struct {
	Speedup float64
	Phases  []phase
}

// phase is a part of a job's work, and what it reports meanwhile.
type phase struct {
	End    float64 // of the work, in the unit of the job
	Rate   float64 // per second of the run
	Report agent.Report
}

// standingIn is a job of the workload as it is run: what stands in for a job keeps what it did, and reports it in the unit
// of the model.
func standingIn(spec *workload.Job) *workload.Job {
	if len(spec.Spec.Command) > 0 {
		return spec
	}
	j := *spec
	j.Process.Checkpoints, j.Process.Reports = true, !j.CountsSeconds()
	return &j
}

// pacesItself reports whether this very program stands in for a job.
func (b *Backend) pacesItself(j *job) bool {
	return len(j.Spec.Command) == 0 && len(b.config.StandIn) == 0
}

// command is what a replica of a job is, and the variables that it finds besides. What it is to read is written.
func (b *Backend) command(j *job, folder string) (command, variables []string, err error) {
	switch {
	case len(j.Spec.Command) > 0:
		return j.Spec.Command, nil, nil
	case b.pacesItself(j):
		err := b.writePace(j, folder)
		return []string{"/proc/self/exe", "stand-in"}, []string{standInVariable + "=" + filepath.Join(folder, paceFile)}, err
	}
	path := filepath.Join(b.folder(j), profileFile)
	if p, ok := j.Model.(workload.Profiled); ok {
		if err := os.WriteFile(path, p.Profile().YAML(), 0o600); err != nil {
			return nil, nil, err
		}
	}
	for _, word := range b.config.StandIn {
		command = append(command, placeholder.ReplaceAllStringFunc(word, func(name string) string {
			if name == "{profile}" {
				return path
			}
			text, _ := b.config.fill(j.Job, name[1:len(name)-1]) // that there is one was checked
			return text
		}))
	}
	return command, nil, nil
}

func (b *Backend) writePace(j *job, folder string) error {
	c := workload.Running{Replicas: core.Replicas(j.seats), Tuning: j.tuning}
	for _, seat := range j.seats {
		c.Shape = append(c.Shape, seat.Devices.Count())
		c.Accelerators = append(c.Accelerators, b.cluster.Accelerators[b.cluster.Nodes[seat.Node].Accelerator])
	}
	return writeFile(filepath.Join(folder, paceFile), paceOf(j.Model, c, b.config.Speedup))
}

// paceOf is what the simulator would make of the model.
func paceOf(m workload.Model, c workload.Running, speedup float64) *pace {
	p := &pace{Speedup: speedup, Phases: make([]phase, m.Phases())}
	measurer, _ := m.(workload.Measurer)
	for i := range p.Phases {
		p.Phases[i] = phase{End: m.PhaseEnd(i), Rate: m.Rate(i, c), Report: agent.Report{Replicas: c.Replicas, Nodes: len(c.Shape)}}
		if measurer == nil {
			continue
		}
		if seen, g, ok := measurer.Measure(i, c); ok {
			p.Phases[i].Report = agent.Report{
				Replicas: c.Replicas, Nodes: seen.Nodes, BatchPerDevice: seen.PerDevice,
				PassSeconds: seen.PassSeconds / speedup, StepSeconds: seen.StepSeconds / speedup,
				GradientSquare: g.SquaredNorm, GradientVariance: g.Variance,
			}
		}
	}
	return p
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// placeholders of a stand-in's command.
var placeholders = []string{"name", "application", "profile", "work", "seconds", "replicas", "batch", "speedup"}

// asked are the placeholders in the command, each once.
func (c *Config) asked() (names []string) {
	for _, word := range c.StandIn {
		for _, name := range placeholder.FindAllString(word, -1) {
			if name = name[1 : len(name)-1]; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (c *Config) checkStandIn() (problems []error) {
	if len(c.StandIn) > 0 && c.StandIn[0] == "" {
		problems = append(problems, errors.New("stand_in: names no program"))
	}
	for _, name := range c.asked() {
		if !slices.Contains(placeholders, name) {
			problems = append(problems, fmt.Errorf("stand_in: nothing is known as {%s}; %s", name, core.SuggestHint(name, "placeholders", placeholders)))
		}
	}
	return problems
}

// unfilled are the placeholders for which a job has nothing.
func (c *Config) unfilled(j *workload.Job) (names []string) {
	for _, name := range c.asked() {
		if _, ok := c.fill(j, name); !ok {
			names = append(names, name)
		}
	}
	return names
}

// fill is what stands for a placeholder, but for the path of a profile; false if a job has nothing for it.
func (c *Config) fill(j *workload.Job, name string) (text string, ok bool) {
	number := func(x float64) (string, bool) { return strconv.FormatFloat(x, 'f', -1, 64), x > 0 }
	switch name {
	case "name":
		return j.Spec.Name, true
	case "application":
		return j.Spec.Application, j.Spec.Application != ""
	case "profile":
		_, ok := j.Model.(workload.Profiled)
		return "", ok
	case "work":
		return number(j.Spec.TotalWork)
	case "seconds":
		if !j.CountsSeconds() {
			return "", false
		}
		return number(j.Spec.TotalWork)
	case "replicas":
		return number(float64(j.Spec.Requested))
	case "batch":
		return number(float64(j.Spec.Batch.Requested))
	case "speedup":
		return number(c.Speedup)
	}
	return "", false
}
