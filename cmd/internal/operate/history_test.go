package operate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
)

// FuzzReadDecisions holds the reader of decisions.jsonl to its word: whatever the file holds, it tells of the job or of what
// is wrong.
func FuzzReadDecisions(f *testing.F) {
	f.Add([]byte(`{"round":1,"t_s":0,"job":"a","action":"start","seats":[["n","0,1"]],"by":"p"}` + "\n" + `{"round":2,"t_s":3,"job":"a","event":"job_finished"}`))
	f.Add([]byte(`{"job":"a","verdict":"reject","reason":"exceeds_cluster","wanted":9,"available":8,"unit":"devices"}`))
	f.Add([]byte(`{"job":"a","seats":[[]],"t_s":1e300}` + "\n\n" + `{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "decisions.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := readDecisions(dir, "a")
		if err != nil {
			if _, ok := errors.AsType[core.Diagnostics](err); !ok {
				t.Fatalf("%v is no diagnostic", err)
			}
			return
		}
		if n := len(d.GetDecisions()); n == 0 || n > keptHistory || d.GetJob().GetState() == "" && !slices.Contains([]string{core.Tune.String(), core.JobProgressed.String()}, d.GetDecisions()[n-1].GetWhat()) {
			t.Errorf("%d decisions leave the job %q", n, d.GetJob().GetState())
		}
		a := &app{&cli.App{Stdout: io.Discard, Format: render.Text}}
		if err := a.writeExplanation(d, nil, capacity{}); err != nil {
			t.Error(err)
		}
	})
}
