package local

import (
	"context"
	"errors"
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
	}
	if other, is := errors.AsType[*journal.OtherVersionError](err); is {
		err = refuseAt(path, "the scheduler "+other.Error(), "ask with the program that runs")
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
	o.config.describePools(c)
	if snapshot == "" {
		if err := o.config.checkJobs(w.Jobs).Err(); err != nil {
			return nil, err
		}
		var seen backend.Membership
		seen.Begin(c)
		seen.Grow(c)
		return journal.NewPreview(w, o.Capabilities()), nil
	}
	m, meta, err := readSnapshot(snapshot)
	if err != nil {
		return nil, err
	}
	if o.sameJobs(meta, w, snapshot) != nil {
		return nil, refuseAt(snapshot, "is of a run with other jobs", "the files that its config names were changed, or this is not the folder that it runs in")
	}
	kept, err := readPools(m)
	if err != nil {
		return nil, refuseAt(snapshot, err.Error(), "")
	}
	if _, err := adopt(c, meta, &supply{taken: map[string]bool{}, kept: kept}); err != nil { // nobody is told their names
		return nil, err
	}
	p, err := journal.Open(m, o.identity, "").Preview(w, o.Capabilities())
	if err != nil {
		return nil, refuseAt(snapshot, err.Error(), "")
	}
	v := &preview{Preview: p, cluster: c}
	v.seen.Begin(c)
	v.seen.Grow(c)
	return v, nil
}

// preview is a journal.Preview of a cluster that may have pools.
type preview struct {
	*journal.Preview
	cluster *core.Cluster
	seen    backend.Membership
}

// Next also says whether the cluster may grow.
func (p *preview) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	o, err := p.Preview.Next(ctx, w)
	p.seen.Take(o.Events)
	p.seen.Grow(p.cluster)
	return o, err
}
