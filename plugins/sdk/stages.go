package sdk

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// lists are the lists that the two ends send each other as edits. A full view starts them anew.
type lists struct {
	waiting   wire.Receiver[core.JobID]
	grantsIn  wire.Receiver[core.Grant]
	placedIn  wire.Receiver[core.Placement]
	verdicts  *wire.Sender[core.Verdict]
	grantsOut *wire.Sender[core.Grant]
	placedOut *wire.Sender[core.Placement]
	unseated  *wire.Sender[core.Verdict]
}

func newLists() lists {
	return lists{
		verdicts: wire.NewVerdictSender(), grantsOut: wire.NewGrantSender(), placedOut: wire.NewPlacementSender(),
		unseated: wire.NewVerdictSender(),
	}
}

// begin brings the view up to date for a call of the policy as S. It reports resync when the host must send the view
// whole. The caller holds the lock.
func begin[S any](s *server, u *stagev1.ViewUpdate) (policy S, resync bool, err error) {
	policy, ok := s.policy.(S)
	if !ok {
		return policy, false, status.Errorf(codes.FailedPrecondition, "the plugin was not configured for stage %q", wire.StageName(wire.StageOf[S]()))
	}
	known, err := s.view.Apply(u)
	if err != nil {
		return policy, false, status.Errorf(codes.InvalidArgument, "view: %v", err)
	}
	if known && u.GetFull() {
		s.lists = newLists()
	}
	return policy, !known, nil
}

func (s *server) standing() *stagev1.Standing {
	if s.can.Steady == nil {
		return nil
	}
	standing := s.can.Steady.Standing()
	return &stagev1.Standing{UntilSeconds: standing.UntilSeconds, IfSeated: int32(standing.IfSeated)}
}

func invalid(err error) error { return status.Errorf(codes.InvalidArgument, "%v", err) }

type admission struct {
	stagev1.UnimplementedAdmissionServiceServer
	*server
}

// Admit asks the policy.
func (s admission) Admit(ctx context.Context, q *stagev1.AdmitRequest) (*stagev1.AdmitResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy, resync, err := begin[core.Admitter](s.server, q.GetView())
	if err != nil || resync {
		return &stagev1.AdmitResponse{Resync: resync}, err
	}
	ids, err := s.lists.waiting.Apply(q.GetEdit().GetSteps(), wire.JobsFrom(q.GetWaiting()))
	if err != nil {
		return nil, invalid(err)
	}
	jobs, err := s.jobs(ids)
	if err != nil {
		return nil, err
	}
	verdicts, err := s.verdicts(ctx, policy, jobs)
	if err != nil {
		return nil, err
	}
	steps, inserted := s.lists.verdicts.Encode(verdicts)
	return &stagev1.AdmitResponse{Edit: &stagev1.Edit{Steps: steps}, Verdicts: wire.Verdicts(inserted), Standing: s.standing()}, nil
}

// Review asks the policy about jobs that it admitted.
func (s admission) Review(ctx context.Context, q *stagev1.ReviewRequest) (*stagev1.ReviewResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, resync, err := begin[core.Admitter](s.server, q.GetView())
	if err != nil || resync {
		return &stagev1.ReviewResponse{Resync: resync}, err
	}
	if s.can.Reviewer == nil {
		return nil, status.Error(codes.FailedPrecondition, "the policy does not review jobs")
	}
	jobs, err := s.jobs(wire.JobsFrom(q.GetReported()))
	if err != nil {
		return nil, err
	}
	verdicts, err := s.can.Reviewer.Review(ctx, &s.view.View, jobs)
	if err != nil {
		return nil, err
	}
	return &stagev1.ReviewResponse{Verdicts: wire.Verdicts(verdicts)}, nil
}

// verdicts asks a policy, by the curves of the jobs if it looks at them.
func (s admission) verdicts(ctx context.Context, policy core.Admitter, jobs []*core.Job) ([]core.Verdict, error) {
	if s.can.CurveAdmitter == nil {
		return policy.Admit(ctx, &s.view.View, jobs)
	}
	if err := s.responded(s.view.Candidates); err != nil {
		return nil, err
	}
	waiting := make([]core.Candidate, 0, len(jobs))
	for _, j := range jobs {
		waiting = append(waiting, s.view.Candidate(j))
	}
	if err := s.responded(waiting); err != nil {
		return nil, err
	}
	return s.can.CurveAdmitter.AdmitCandidates(ctx, &s.view.View, s.view.Candidates, waiting)
}

// responded fails for a job whose response the host did not send.
func (s *server) responded(jobs []core.Candidate) error {
	for _, c := range jobs {
		if c.Response == nil {
			return status.Errorf(codes.InvalidArgument, "job %d competes without a response", c.ID)
		}
	}
	return nil
}

func (s *server) jobs(ids []core.JobID) ([]*core.Job, error) {
	jobs := make([]*core.Job, 0, len(ids))
	for _, id := range ids {
		j := s.view.View.Job(id)
		if j == nil {
			return nil, status.Errorf(codes.InvalidArgument, "asked about unknown job %d", id)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

type allocation struct {
	stagev1.UnimplementedAllocationServiceServer
	*server
}

// Allocate asks the policy.
func (s allocation) Allocate(ctx context.Context, q *stagev1.AllocateRequest) (*stagev1.AllocateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy, resync, err := begin[core.Allocator](s.server, q.GetView())
	if err != nil || resync {
		return &stagev1.AllocateResponse{Resync: resync}, err
	}
	if err := s.responded(s.view.Candidates); err != nil {
		return nil, err
	}
	candidates, err := wire.FewerFrom(s.view.Candidates, q.GetWithheld(), q.GetNarrowed())
	if err != nil {
		return nil, invalid(err)
	}
	grants, err := policy.Allocate(ctx, &s.view.View, candidates)
	if err != nil {
		return nil, err
	}
	steps, inserted := s.lists.grantsOut.Encode(grants)
	return &stagev1.AllocateResponse{
		Edit: &stagev1.Edit{Steps: steps}, Grants: wire.Grants(inserted), Standing: s.standing(), GapRatio: s.gap(),
	}, nil
}

// gap is what the policy certifies of its last answer; nil for nothing.
func (s *server) gap() *float64 {
	if s.can.Certifier == nil {
		return nil
	}
	gap := s.can.Certifier.GapRatio()
	return &gap
}

type placement struct {
	stagev1.UnimplementedPlacementServiceServer
	*server
}

// Place asks the policy.
func (s placement) Place(ctx context.Context, q *stagev1.PlaceRequest) (*stagev1.PlaceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy, resync, err := begin[core.Placer](s.server, q.GetView())
	if err != nil || resync {
		return &stagev1.PlaceResponse{Resync: resync}, err
	}
	grants, err := s.lists.grantsIn.Apply(q.GetEdit().GetSteps(), wire.GrantsFrom(q.GetGrants()))
	if err != nil {
		return nil, invalid(err)
	}
	if s.view.View.Reserved, err = wire.ReservationsFrom(q.GetReserved(), s.view.View.Cluster); err != nil {
		return nil, invalid(err)
	}
	seating, err := policy.Place(ctx, &s.view.View, grants)
	if err != nil {
		return nil, err
	}
	placedSteps, placed := s.lists.placedOut.Encode(seating.Placed)
	unseatedSteps, unseated := s.lists.unseated.Encode(seating.Unseated)
	return &stagev1.PlaceResponse{
		PlacedEdit: &stagev1.Edit{Steps: placedSteps}, Placed: wire.Placements(placed),
		UnseatedEdit: &stagev1.Edit{Steps: unseatedSteps}, Unseated: wire.Verdicts(unseated), Standing: s.standing(),
	}, nil
}

type elasticity struct {
	stagev1.UnimplementedElasticityServiceServer
	*server
}

// Respond asks the policy.
func (s elasticity) Respond(ctx context.Context, q *stagev1.RespondRequest) (*stagev1.RespondResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := wire.EndedJobsFrom(q.GetEnded(), s.view.View.Job) // before the view forgets them
	policy, resync, err := begin[core.Elasticity](s.server, q.GetView())
	if err != nil || resync {
		return &stagev1.RespondResponse{Resync: resync}, err
	}
	if s.can.Historian != nil && len(ended) > 0 {
		if err := s.can.Historian.Ended(ctx, &s.view.View, ended); err != nil {
			return nil, err
		}
	}
	if len(q.GetEnded()) > 0 && len(q.GetJobs()) == 0 {
		return &stagev1.RespondResponse{Standing: s.standing()}, nil
	}
	jobs, err := s.jobs(wire.JobsFrom(q.GetJobs()))
	if err != nil {
		return nil, err
	}
	responses, err := policy.Respond(ctx, &s.view.View, jobs)
	if err != nil {
		return nil, err
	}
	return &stagev1.RespondResponse{Responses: wire.Responses(responses), Standing: s.standing()}, nil
}

// Tune asks the policy.
func (s elasticity) Tune(ctx context.Context, q *stagev1.TuneRequest) (*stagev1.TuneResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy, resync, err := begin[core.Elasticity](s.server, q.GetView())
	if err != nil || resync {
		return &stagev1.TuneResponse{Resync: resync}, err
	}
	placements, err := s.lists.placedIn.Apply(q.GetEdit().GetSteps(), wire.PlacementsFrom(q.GetPlacements()))
	if err != nil {
		return nil, invalid(err)
	}
	tunings, err := policy.Tune(ctx, &s.view.View, placements)
	if err != nil {
		return nil, err
	}
	return &stagev1.TuneResponse{Tunings: wire.Tunings(tunings), Standing: s.standing()}, nil
}

type scaler struct {
	stagev1.UnimplementedScalerServiceServer
	*server
}

// Scale asks the policy.
func (s scaler) Scale(ctx context.Context, q *stagev1.ScaleRequest) (*stagev1.ScaleResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy, resync, err := begin[core.ClusterScaler](s.server, q.GetView())
	if err != nil || resync {
		return &stagev1.ScaleResponse{Resync: resync}, err
	}
	grants, err := s.lists.grantsIn.Apply(q.GetGrantsEdit().GetSteps(), wire.GrantsFrom(q.GetGrants()))
	if err != nil {
		return nil, invalid(err)
	}
	placements, err := s.lists.placedIn.Apply(q.GetPlacementsEdit().GetSteps(), wire.PlacementsFrom(q.GetPlacements()))
	if err != nil {
		return nil, invalid(err)
	}
	target, err := policy.Scale(ctx, &s.view.View, &core.Plan{
		Grants: grants, Placements: placements, Tunings: wire.TuningsFrom(q.GetTunings()),
		Candidates: s.view.Shown(),
	})
	if err != nil {
		return nil, err
	}
	return &stagev1.ScaleResponse{Nodes: int32(target.Nodes), Pools: wire.PoolTargets(target.Pools), Standing: s.standing()}, nil
}
