package engine

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
)

// manifestOf is the manifest of a run as far as its config and this program tell.
func manifestOf(c *configs.Config, resolved []byte) Manifest {
	b := ReadBuild()
	return Manifest{
		Schema: ManifestSchema, Name: c.Name, Seed: c.Seed, Quartet: b.Version, Commit: b.Commit, Go: b.Go, Config: string(resolved),
		Inputs: []Digest{}, Outputs: []Digest{},
	}
}

// beginManifest leaves what is known of a run that goes on in its folder.
func (e *execution) beginManifest() error {
	decided := e.policies
	if e.dir == "" {
		return nil
	}
	decided.mutex.Lock()
	c, earlier, inputs := decided.config, decided.earlier, decided.inputs
	decided.mutex.Unlock()
	resolved, err := placeless(c).Resolved()
	if err != nil {
		return err
	}
	m := manifestOf(c, resolved)
	m.Earlier, m.Plugins, m.Inputs = earlier, e.pluginsUsed(), slices.Concat(m.Inputs, e.inputs, inputs)
	text, err := document(m)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return e.files.begin(text)
}

// liveFiles keeps the files of a live run up to date, for whoever reads them. It observes rounds after those that write them.
type liveFiles struct{ *execution }

// ObserveRound writes out what the round came to. The rounds of an earlier scheduler are written at once when all are repeated.
func (t *liveFiles) ObserveRound(r *core.Report) error {
	if s := r.Resumed; s != nil && s.Now != nil {
		if err := t.beginManifest(); err != nil {
			return err
		}
	}
	if t.can.Memory.Replaying() {
		return nil
	}
	if err := t.collector.Flush(); err != nil || t.recorder == nil {
		return err
	}
	return t.recorder.Flush()
}
