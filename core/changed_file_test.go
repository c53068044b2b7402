package core_test

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

type reading struct{ steadyRigid }

func (reading) FilesRead() []core.FileRead {
	return []core.FileRead{{Path: "pool.yaml", SHA256: "new"}}
}

// A round that is decided otherwise because a file changed says which.
func TestADivergingRoundNamesTheFileThatChanged(t *testing.T) {
	for before, want := range map[string]bool{"old": true, "new": false} {
		stages := steady(forEver)
		stages.Elasticity.Policy = reading{}
		p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{})
		err := p.Round(t.Context(), core.Observation{
			Events:  []core.Event{submit(0, 0, 4)},
			Decided: &core.Decided{Same: true, Files: []core.FileRead{{Path: "pool.yaml", SHA256: before}}},
		}, &script{})
		if err == nil || strings.HasPrefix(err.Error(), "pool.yaml was changed since the run read it: round 1 was decided otherwise") != want {
			t.Errorf("%s file: %v", before, err)
		}
	}
}
