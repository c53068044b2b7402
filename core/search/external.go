package search

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// external is a search in another process, which is asked and told in JSON, one line at a time: docs/search-with-quartet.md has the protocol. The process starts when it is first
// asked or told. When it dies, answers late or answers what it must not, the search is broken, and says why each time that it is asked.
type external struct {
	ExternalConfig
	problem Problem
	seed    uint64
	log     *slog.Logger
	process *process
	broken  error
	done    bool
	resume  *past
	history
}

// ExternalConfig says how the process is started.
type ExternalConfig struct {
	Command []string      `config:"command" doc:"program and arguments; no shell reads them" required:"true"`       // program and its arguments
	Timeout time.Duration `config:"timeout" doc:"how long it may take to start, and to answer" min:"1ms" max:"24h"` // longest time to start, and to answer
}

// Validate reports a command without a program.
func (c ExternalConfig) Validate() error {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return errors.New("command: names no program")
	}
	return nil
}

// NewExternal makes the factory of the search `external`.
func NewExternal() core.Factory[Method] {
	return core.NewFactory(core.Info{
		Type: "external", Summary: "asks another process, such as Optuna",
		Description: "One JSON object a line on standard input and output; docs/search-with-quartet.md has the protocol, and a package for Python that speaks it.",
	}, ExternalConfig{Timeout: time.Minute}, func(c ExternalConfig, s core.Settings) (Method, error) {
		return func(p Problem) (Search, error) {
			return &external{ExternalConfig: c, problem: p, seed: s.Seed, log: s.Log}, nil
		}, nil
	})
}

// Resume sends the process what it proposed and received in an earlier life. It is called before anything else.
func (e *external) Resume(exchanges []Exchange) error {
	e.resume = &past{Trials: []trialLine{}, Tell: []resultLine{}}
	for i := range exchanges {
		x := &exchanges[i]
		if err := e.tell(x.Results); err != nil {
			return err
		}
		_, _, err := e.take(answer{Trials: linesOf(x.Trials), Stop: x.Stop}, e.problem.Space, x.Ask, x.Results)
		if err != nil {
			return err
		}
		e.resume.Trials = append(e.resume.Trials, linesOf(x.Trials)...)
		e.resume.Tell = append(e.resume.Tell, resultLines(x.Results)...)
	}
	if len(exchanges) == 0 {
		e.resume = nil
	}
	return nil
}

// Ask asks the process for trials, unless it said that there are no more.
func (e *external) Ask(ctx context.Context, n int) ([]Trial, error) {
	if err := checkAsk(n); err != nil {
		return nil, err
	}
	if e.done && e.broken == nil {
		return nil, nil
	}
	trials, _, err := e.exchange(ctx, n, nil)
	return trials, err
}

// Tell passes results to the process, and returns the trials that it wants stopped.
func (e *external) Tell(ctx context.Context, results []Result) ([]int, error) {
	if e.broken != nil {
		return nil, e.broken
	}
	if err := e.tell(results); err != nil || len(results) == 0 {
		return nil, err
	}
	_, stop, err := e.exchange(ctx, 0, results)
	return stop, err
}

func (e *external) exchange(ctx context.Context, n int, results []Result) ([]Trial, []int, error) {
	if e.broken != nil {
		return nil, nil, e.broken
	}
	a, err := e.call(ctx, request{Ask: n, Tell: resultLines(results)})
	if err == nil {
		var trials []Trial
		var stop []int
		if trials, stop, err = e.take(a, e.problem.Space, n, results); err == nil {
			e.done = e.done || a.Done
			return trials, stop, nil
		}
	}
	e.fail(err)
	return nil, nil, e.broken
}

// fail ends the process, for it and its search can no longer be told apart from what they should be.
func (e *external) fail(err error) {
	e.broken = fmt.Errorf("search %s: %w", shown([]byte(strings.Join(e.Command, " "))), err)
	if e.process != nil {
		e.process.kill()
	}
}

func (e *external) call(ctx context.Context, r request) (answer, error) {
	if e.process == nil {
		if err := e.start(ctx); err != nil {
			return answer{}, err
		}
	}
	return e.say(ctx, r)
}

func (e *external) start(ctx context.Context) (err error) {
	if e.process, err = startProcess(e.Command, e.log); err != nil {
		return err
	}
	space := e.problem.Space
	if space == nil {
		space = Space{}
	}
	a, err := e.say(ctx, request{Hello: &hello{Protocol, e.problem.Goal.String(), e.seed, space, e.resume}})
	switch {
	case err != nil:
		return fmt.Errorf("hello: %w", err)
	case a.Protocol != Protocol:
		return fmt.Errorf("hello: it speaks protocol %d, not %d", a.Protocol, Protocol)
	case len(a.Trials) > 0 || len(a.Stop) > 0 || a.Done:
		return errors.New("hello: it answers more than its protocol")
	}
	e.resume = nil
	return nil
}

// say writes one line and reads one.
func (e *external) say(ctx context.Context, r request) (answer, error) {
	line, err := plainJSON(r)
	if err != nil {
		return answer{}, err
	}
	if line, err = e.process.exchange(ctx, append(line, '\n'), e.Timeout); err != nil {
		return answer{}, err
	}
	a, err := parseAnswer(line)
	if err == nil && a.Error != "" {
		err = fmt.Errorf("it says: %s", a.Error)
	}
	return a, err
}

// Close ends the process: its input ends, and soon after so does its group.
func (e *external) Close() error {
	if e.process != nil {
		e.process.close()
	}
	return nil
}
