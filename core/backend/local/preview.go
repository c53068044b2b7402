package local

import (
	"context"
	"fmt"
	"os"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// readSnapshot reads a snapshot, as backend.Operated writes it.
func readSnapshot(path string) (*journal.Memory, *journal.Meta, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open the snapshot: %w", err)
	}
	defer f.Close()
	m, err := journal.ReadSnapshot(f)
	var meta *journal.Meta
	if err == nil {
		meta, err = journal.Open(m, "", "").Meta()
	}
	switch {
	case err != nil:
	case meta == nil:
		err = refuseAt(path, "holds no run", "")
	case meta.Schema != journal.Schema:
		err = refuseAt(path, fmt.Sprintf("holds schema %q, this program reads %q", meta.Schema, journal.Schema), "ask with the program that runs")
	}
	if err != nil {
		return nil, nil, err
	}
	return m, meta, nil
}

// SnapshotConfig is the resolved config of the run that a snapshot is of.
func SnapshotConfig(path string) (string, error) {
	_, meta, err := readSnapshot(path)
	if err != nil {
		return "", err
	}
	return meta.Config, nil
}

// Preview opens a snapshot, as backend.Operated writes it, and makes the cluster that of its run; without one, the run is taken
// to begin now.
func (o *Opener) Preview(ctx context.Context, snapshot string, c *core.Cluster, w *workload.Workload) (backend.Preview, error) {
	if snapshot == "" {
		if err := o.config.checkJobs(w.Jobs).Err(); err != nil {
			return nil, err
		}
		return journal.NewPreview(w, o.Capabilities()), nil
	}
	m, meta, err := readSnapshot(snapshot)
	if err != nil {
		return nil, err
	}
	if meta.Workload != identityOf(w) {
		return nil, refuseAt(snapshot, "is of a run with other jobs", "the files that its config names were changed, or this is not the folder that it runs in")
	}
	if _, err := adopt(c, meta, &supply{taken: map[string]bool{}}); err != nil { // nobody is told their names
		return nil, err
	}
	p, err := journal.Open(m, o.identity, "").Preview(w, o.Capabilities())
	if err != nil {
		return nil, refuseAt(snapshot, err.Error(), "")
	}
	return p, nil
}
