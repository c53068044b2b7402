package wire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// before is what a plugin knew that was built before ConfigureResponse.changing: an admitter that refuses all else, and keeps
// a copy by the rules of then.
type before struct {
	encoder wire.Encoder
	nodes   int
	specs   map[int32]*stagev1.JobSpec
	active  map[int32]bool
}

var reasonsBefore = []string{
	"none", "exceeds_cluster", "accelerator_missing", "quota_exceeded", "load_limit", "waiting_for_devices", "blocked_by_earlier",
	"fragmented", "preempted_by_priority", "node_unavailable", "policy_decision",
}

func (b *before) Admit(_ context.Context, v *core.View, _ []*core.Job) ([]core.Verdict, error) {
	u := b.encoder.Encode(v, nil, nil)
	if u.GetFull() {
		b.nodes, b.specs, b.active = len(u.GetNodes()), map[int32]*stagev1.JobSpec{}, map[int32]bool{}
	}
	for _, n := range u.GetNodes() {
		if int(n.GetId()) >= b.nodes || n.GetHealth() > stagev1.Health_HEALTH_DOWN || n.GetUnusable() != 0 || n.GetExpectedSeconds() != 0 {
			return nil, fmt.Errorf("it is told of node %v among %d", n, b.nodes)
		}
		node := &v.Cluster.Nodes[n.GetId()]
		if ready := n.GetHealth() == stagev1.Health_HEALTH_READY; ready && node.Usable() != core.FirstDevices(node.Devices) {
			return nil, fmt.Errorf("node %d is ready for it, and has only devices %v", n.GetId(), node.Usable())
		}
	}
	for _, j := range u.GetJobs() {
		if len(j.GetReported()) > 0 || j.GetStarting() || j.GetSpec().GetSuspended() || !slices.Contains(reasonsBefore, j.GetWaitingReason()) {
			return nil, fmt.Errorf("it is told of job %v", j)
		}
		if j.GetSpec() != nil {
			b.specs[j.GetId()] = j.GetSpec()
		}
		if b.active[j.GetId()] && j.GetState() == stagev1.JobState_JOB_STATE_PENDING {
			return nil, fmt.Errorf("job %d was active, and is told as pending in an update that is not full", j.GetId())
		}
		b.active[j.GetId()] = j.GetState() != stagev1.JobState_JOB_STATE_PENDING
	}
	for _, id := range u.GetEnded() {
		delete(b.specs, id)
		delete(b.active, id)
	}
	for _, j := range v.Jobs {
		if j == nil || j.State.Ended() {
			continue
		}
		if s := b.specs[int32(j.ID)]; s == nil || int(s.GetMinReplicas()) != j.MinReplicas || s.GetWeight() != j.Weight {
			return nil, fmt.Errorf("job %d has another specification than it was told: %v", j.ID, s)
		}
	}
	if b.nodes != len(v.Cluster.Nodes) {
		return nil, errors.New("it was not told of a node that joined")
	}
	return nil, nil
}

// Review stands for another admission, which holds jobs back and ends them.
func (*before) Review(_ context.Context, _ *core.View, reported []*core.Job) ([]core.Verdict, error) {
	return coretest.ReviewBySteps(reported), nil
}

// A plugin built before is told of what changes in the words that it knows.
func TestAPluginOfBeforeIsToldWhatItKnows(t *testing.T) {
	info := core.Info{Type: "before", Summary: "refuses what is new", Description: "refuses what is new"}
	coretest.RunAdmitter(t, core.NewFactory(info, core.None{}, func(core.None, core.Settings) (core.Admitter, error) {
		return &before{encoder: wire.Encoder{Plain: true}}, nil
	}), coretest.Elsewhere(), coretest.Reporting(), coretest.Pools())
}
