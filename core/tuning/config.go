// Package tuning is the workload of a search for hyper-parameters: trials that a search proposes, each a job, submitted as those before them end.
package tuning

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/workload"
)

// Config configures New.
type Config struct {
	Experiment string           `config:"experiment" doc:"name of the search, which those of its jobs begin with: letters, digits, -, _ and ."`                                                                                                         // name of the search, the prefix of its jobs
	Trials     int              `config:"trials" doc:"how many trials there are at most; 0 for as many as the search has, which random and tpe never run out of" min:"0" max:"1000000"`                                                                 // largest number of trials; 0 for no limit
	Parallel   int              `config:"parallel" doc:"how many trials there are at a time that have not ended; one that a policy holds back does not count" min:"1" max:"1000000"`                                                                    // largest number of trials that have not ended at a time
	Metric     string           `config:"metric" required:"true" doc:"what trials are judged by, as they report it"`                                                                                                                                    // metric that trials report and are judged by
	Goal       string           `config:"goal" required:"true" doc:"whether a good value is a small or a large one" enum:"minimize|maximize"`                                                                                                           // minimize or maximize
	Space      []map[string]any `config:"space" doc:"the hyper-parameters, each with its name and what values it may have; none for a search that brings its own"`                                                                                      // hyper-parameters, each with its name and values
	Search     search.Setting   `config:"search" doc:"where trials come from"`                                                                                                                                                                          // search that proposes trials
	Job        map[string]any   `config:"job" doc:"the job that a trial is, with the keys of a job in a job file but name, submit and experiment; in its command, its environment and its dir \"${NAME}\" stands for the hyper-parameter of that name"` // job that a trial is, with the keys of a job file
	Simulated  Simulated        `config:"simulated" doc:"how trials go in a simulation"`                                                                                                                                                                // how trials progress in a simulation
}

// Simulated says how trials go in a simulation.
type Simulated struct {
	Application string `config:"application" doc:"application with a measured profile that the trials train; none: a trial takes as long as job.seconds says, and reports nothing"`                              // application with a measured profile that the trials train; empty for none
	Profiles    string `config:"profiles" doc:"folder of the measured profiles, holding traces/ and delaunay/"`                                                                                                  // folder of the measured profiles
	Batch       int    `config:"batch" doc:"total batch that a trial asks for; 0 for the smallest that was measured" min:"0"`                                                                                    // total batch of a trial, in samples; 0 for the smallest that was measured
	CurveBatch  int    `config:"curve_batch" doc:"total batch of the training whose metric trials report, whatever their own; 0 for the batch that they ask for" min:"0"`                                        // total batch of the training whose metric trials report, in samples; 0 for their own
	Adapts      bool   `config:"adapts" doc:"a trial chooses the best batch for its devices by itself as each epoch begins, whatever the scheduler sets, as the agent of Pollux does"`                           // a trial chooses the best batch for its devices as each epoch begins
	Width       string `config:"width" doc:"hyper-parameter that multiplies the times of steps; none: 2^U(-1,1), drawn for each trial"`                                                                          // hyper-parameter that multiplies the time of a step; empty for a random factor
	Quality     string `config:"quality" doc:"hyper-parameter that says how far off the best setting a trial is, in standard deviations: each costs 8 % of the metric; none: drawn for each trial, from N(0,1)"` // hyper-parameter that says how far off the best setting a trial is, in standard deviations; empty for a random distance
	Noise       string `config:"noise" doc:"hyper-parameter that is added to all that a trial reports; none: drawn for each trial, from N(0,0.003)"`                                                             // hyper-parameter that is added to every reported value; empty for random noise
}

// goal is the one of the config.
func (c *Config) goal() search.Goal {
	if c.Goal == search.Maximize.String() {
		return search.Maximize
	}
	return search.Minimize
}

// trialDigits are those of the number in the name of a trial.
const trialDigits = 4

// Validate reports all that is wrong with the settings.
func (c Config) Validate() error {
	_, found := c.check()
	return found.Err()
}

// plan is a checked config.
type plan struct {
	Config
	template *workload.Template
	space    search.Space
	chosen   *search.Chosen
}

// check makes the plan of a config, and finds everything that is wrong with it.
func (c *Config) check() (*plan, core.Diagnostics) {
	var found core.Diagnostics
	problem := func(path, summary, hint string) {
		found = append(found, core.Diagnostic{Path: path, Summary: summary, Hint: hint})
	}
	if longest := fmt.Sprintf("%s-%0*d", c.Experiment, trialDigits, c.Trials); !workload.PlainName(longest) {
		problem("experiment", fmt.Sprintf("%q cannot name jobs such as %q", c.Experiment, longest), "use letters, digits, \"-\", \"_\" and \".\", the first a letter, digit or \"_\", no more than 60 with the number of a trial")
	}
	if c.Metric == "" {
		problem("metric", "is empty", "")
	}
	p := &plan{Config: *c}
	simulated := c.Simulated.Application != ""
	var ds core.Diagnostics
	p.space, ds = search.DecodeSpace("space", c.Space)
	found = append(found, ds...)
	if len(ds) == 0 { // or else the search would be held to a space that is wrong
		p.chosen, ds = c.Search.Decode("search", "space", search.Problem{Space: p.space, Goal: c.goal()})
		found = append(found, ds...)
		if c.Trials == 0 && p.chosen != nil && p.chosen.Endless() {
			problem("trials", fmt.Sprintf("required but missing: the search %q never ends", p.chosen.Type()), "say how many there are at most, such as 100")
		}
	}
	p.template, ds = workload.DecodeTemplate("job", c.Job)
	found = append(found, ds...)
	s := &c.Simulated
	if !simulated && *s != (Simulated{}) {
		problem("simulated.application", "is empty, and other settings of a simulation are given", "name the application that trials train")
	}
	if simulated && s.Profiles == "" {
		problem("simulated.profiles", "required but missing", "the folder that holds traces/ and delaunay/")
	}
	if len(p.space) > 0 {
		names := p.names()
		for i, name := range names {
			if slices.Contains(reserved, name) {
				problem(fmt.Sprintf("space[%d].name", i), fmt.Sprintf("%q stands for something else in the job of a trial", name), "choose another name")
			}
		}
		for _, named := range [...]struct{ path, name string }{{"simulated.width", s.Width}, {"simulated.quality", s.Quality}, {"simulated.noise", s.Noise}} {
			if named.name != "" && !slices.Contains(names, named.name) {
				problem(named.path, fmt.Sprintf("there is no hyper-parameter %q", named.name), core.SuggestHint(named.name, "hyper-parameters", names))
			}
		}
		if p.template != nil {
			for _, d := range p.template.Unknown(append(names, reserved...)) {
				d.Path = core.JoinPath("job", d.Path)
				found = append(found, d)
			}
		}
	}
	if len(found) > 0 {
		return nil, found
	}
	return p, nil
}

// names are those of the hyper-parameters of the space.
func (p *plan) names() []string {
	names := make([]string, len(p.space))
	for i := range names {
		names[i] = p.space[i].Name
	}
	return names
}

// shape is how a trial goes in a simulation.
func (p *plan) shape(seed uint64, t search.Trial) (workload.TrialShape, error) {
	s := &p.Simulated
	r := core.NewRand(seed, fmt.Sprintf("tuning/trial/%d", t.ID))
	quality, noise, width := r.NormFloat64(), 0.003*r.NormFloat64(), math.Exp2(2*r.Float64()-1)
	var problems []error
	for _, from := range [...]struct {
		name  string
		to    *float64
		least float64
	}{{s.Width, &width, math.SmallestNonzeroFloat64}, {s.Quality, &quality, math.Inf(-1)}, {s.Noise, &noise, math.Inf(-1)}} {
		if from.name == "" {
			continue
		}
		v, given := t.Params.Get(from.name)
		x, number := v.Float()
		switch {
		case !given:
			problems = append(problems, fmt.Errorf("trial %d has no hyper-parameter %q", t.ID, from.name))
		case !number || math.IsNaN(x) || math.IsInf(x, 0) || x < from.least:
			problems = append(problems, fmt.Errorf("trial %d: %s %q cannot be simulated by", t.ID, from.name, v))
		default:
			*from.to = x
		}
	}
	return workload.TrialShape{Width: width, Quality: quality, Noise: noise}, errors.Join(problems...)
}
