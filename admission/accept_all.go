package admission

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// NewAcceptAll admits every job at once. O(1).
func NewAcceptAll() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:        "accept_all",
		Summary:     "admits every job at once",
		Description: "Holds no job back: a job competes for devices from the first round that knows of it. O(1).",
	}, core.None{}, func(core.None, core.Settings) (core.Admitter, error) { return acceptAll{}, nil })
}

type acceptAll struct{ onEvents }

func (acceptAll) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return nil, nil
}
