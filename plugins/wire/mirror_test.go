package wire_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// mirror is a stage that keeps a copy of its view by what an Encoder sends, and refuses to answer when they differ.
type mirror struct {
	encoder wire.Encoder // sends reports, too
	copy    wire.Copy
	bytes   int  // of the last update
	full    bool // it was a full one
}

// look sends the view over the wire and compares what arrives.
func (m *mirror) look(v *core.View, candidates, waiting []core.Candidate) error {
	m.encoder.Reports = true
	message, err := proto.Marshal(m.encoder.Encode(v, candidates, waiting))
	if err != nil {
		return err
	}
	received := new(stagev1.ViewUpdate)
	if err := proto.Unmarshal(message, received); err != nil {
		return err
	}
	m.bytes, m.full = len(message), received.GetFull()
	if known, err := m.copy.Apply(received); err != nil || !known {
		return errors.Join(errors.New("the update was not applied"), err)
	}
	if diff := difference(living(v), &m.copy.View); diff != "" {
		return errors.New("view -sent +received:\n" + diff)
	}
	if candidates != nil {
		if diff := difference(candidates, m.copy.Candidates); diff != "" {
			return errors.New("candidates -sent +received:\n" + diff)
		}
	}
	var receivedWaiting []core.Candidate
	for _, c := range waiting {
		receivedWaiting = append(receivedWaiting, m.copy.Candidate(m.copy.View.Job(c.ID)))
	}
	if diff := difference(waiting, receivedWaiting); diff != "" {
		return errors.New("waiting -sent +received:\n" + diff)
	}
	return nil
}

var equal = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(core.View{})}

// living is the view without the jobs that this very round rejected, which are not sent.
func living(v *core.View) *core.View {
	l := *v
	l.Jobs = make([]*core.Job, len(v.Jobs))
	for id, j := range v.Jobs {
		if j != nil && !j.State.Ended() {
			l.Jobs[id] = j
		}
	}
	return &l
}

// Admit admits every job.
func (m *mirror) Admit(_ context.Context, v *core.View, _ []*core.Job) ([]core.Verdict, error) {
	return nil, m.look(v, nil, nil)
}

// curveMirror is a mirror that looks at what jobs do with accelerators. It defers and rejects some, so that responses change while jobs wait.
type curveMirror struct{ mirror }

// AdmitCandidates admits a job in one of three rounds, and rejects every seventh.
func (m *curveMirror) AdmitCandidates(_ context.Context, v *core.View, admitted, waiting []core.Candidate) ([]core.Verdict, error) {
	var verdicts []core.Verdict
	for _, c := range waiting {
		switch {
		case c.ID%7 == 6:
			verdicts = append(verdicts, core.Verdict{Job: c.ID, Code: core.Reject, Reason: core.PolicyDecision})
		case (int(c.ID)+v.Round)%3 > 0:
			verdicts = append(verdicts, core.Verdict{Job: c.ID, Code: core.Defer, Reason: core.PolicyDecision})
		}
	}
	return verdicts, m.look(v, admitted, waiting)
}

// Review ends some of the jobs that report, and holds others back.
func (m *mirror) Review(_ context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	err := m.look(v, nil, nil)
	m.encoder.SendAgain()
	return coretest.ReviewBySteps(reported), err
}

// Allocate gives every candidate its least.
func (m *mirror) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	return m.AllocateSome(ctx, v, candidates, candidates)
}

// AllocateSome gives those that it is asked about their least. What says which these are is sent over the wire, too.
func (m *mirror) AllocateSome(_ context.Context, v *core.View, candidates, some []core.Candidate) ([]core.Grant, error) {
	withheld, narrowed := wire.Fewer(candidates, some)
	received, err := wire.FewerFrom(candidates, withheld, narrowed)
	if diff := difference(some, received); err != nil || diff != "" {
		return nil, errors.Join(err, errors.New("asked about -sent +received:\n"+diff))
	}
	var grants []core.Grant
	for _, c := range some {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MinReplicas})
	}
	return grants, m.look(v, candidates, nil)
}

// Respond makes every job rigid.
func (m *mirror) Respond(_ context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	var responses []core.Response
	for _, j := range jobs {
		responses = append(responses, coretest.Rigid(j))
	}
	return responses, m.look(v, nil, nil)
}

// Tune leaves everything as it is.
func (m *mirror) Tune(_ context.Context, v *core.View, _ []core.Placement) ([]core.Tuning, error) {
	return nil, m.look(v, nil, nil)
}

// Scale wants as many nodes as there are.
func (m *mirror) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	var admitted, awaiting []core.Candidate
	for _, c := range plan.Candidates {
		if c.State == core.Pending {
			awaiting = append(awaiting, c)
		} else {
			admitted = append(admitted, c)
		}
	}
	if err := m.look(v, admitted, awaiting); err != nil || plan.Candidates == nil {
		return core.ClusterTarget{}, err
	}
	if diff := difference(plan.Candidates, m.copy.Shown()); diff != "" {
		return core.ClusterTarget{}, errors.New("shown -sent +received:\n" + diff)
	}
	return core.ClusterTarget{}, nil
}

// TestACopyIsTheView has the conformance suites drive a mirror in each stage through random worlds, where jobs come and
// go and nodes fail.
func TestACopyIsTheView(t *testing.T) {
	info := core.Info{Type: "mirror", Summary: "compares", Description: "compares its view with a copy"}
	t.Run("admission", func(t *testing.T) {
		coretest.RunAdmitter(t, core.NewFactory(info, core.None{}, func(core.None, core.Settings) (core.Admitter, error) {
			return new(mirror), nil
		}), coretest.Elsewhere(), coretest.Reporting(), coretest.Pools(), coretest.Sharing())
	})
	t.Run("admission by curves", func(t *testing.T) {
		coretest.RunAdmitter(t, core.NewFactory(info, core.None{}, func(core.None, core.Settings) (core.Admitter, error) {
			return new(curveMirror), nil
		}), coretest.Elsewhere(), coretest.Reporting())
	})
	t.Run("allocation", func(t *testing.T) {
		coretest.RunAllocator(t, core.NewFactory(info, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
			return new(mirror), nil
		}), coretest.Elsewhere(), coretest.Reporting(), coretest.Deadlines(), coretest.Tiers(), coretest.Pools(), coretest.Sharing())
	})
	t.Run("scaler", func(t *testing.T) {
		coretest.RunScaler(t, core.NewFactory(info, core.None{}, func(core.None, core.Settings) (core.ClusterScaler, error) {
			return new(mirror), nil
		}), coretest.Elsewhere(), coretest.Reporting())
	})
	t.Run("elasticity", func(t *testing.T) {
		coretest.RunElasticity(t, core.NewFactory(info, core.None{}, func(core.None, core.Settings) (core.Elasticity, error) {
			return new(mirror), nil
		}), coretest.Elsewhere(), coretest.Reporting(), coretest.Pools(), coretest.Sharing())
	})
}
