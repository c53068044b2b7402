package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// The checks after each stage. What a stage answers is believed only after them, and a broken rule names the component.

// Rule names, as they appear in InvariantError.
const (
	RuleAnswerForAsked   = "answers only for what was asked"
	RuleAnswerOnce       = "answers once for each job"
	RuleReplicasInRange  = "replicas within min..max"
	RuleAnswerEveryGrant = "every grant is seated or refused"
	RuleDeviceOnce       = "no device twice, none on a node that is down or draining"
	RuleDeviceLeft       = "no more of a device and of its memory than is left"
	RuleNodeLeft         = "no more CPUs and memory than a node has left"
	RuleGangComplete     = "all replicas or none"
	RuleOneAccelerator   = "one accelerator type for a job that does not mix them, one it can run on"
	RuleGapSane          = "a certified gap between 0 and 1"
	RulePinnedStays      = "a pinned job keeps its devices"
	RuleTuningSane       = "batch settings not negative"
	RuleVerdictAllowed   = "verdicts with a code and a reason that the stage may give"
	RuleResponseSane     = "rates and work that are finite and not negative"
	RuleProposalSane     = "a proposal of one existing device for each replica, or none"
	RuleStandingSane     = "a standing that ends at a moment, if grants of this answer are seated"
	RuleTargetSane       = "a target that is a number of nodes"
	RuleResourcesSane    = "CPUs and memory that are finite and not negative, where the cluster counts them"
	RuleGroupSane        = "groups of like grants that follow one another, where jobs take turns on devices, and no larger than devices have owners"
	RuleGroupTogether    = "jobs of a group on the same devices"
)

// ask asks a stage, and again as long as its answer breaks a rule and it can recover from that. forget takes back what
// a job was marked with by an answer that did not hold. A nil stage cannot recover.
func (s *state) ask(ctx context.Context, component string, stage Recoverer, forget func(*mark), ask func() error) error {
	for {
		s.asking = component
		err := ask()
		s.asking = ""
		if err == nil {
			return nil
		}
		if stage == nil {
			return err
		}
		if again, err := stage.Recover(ctx, err); !again {
			return err
		}
		if forget != nil {
			for i := range s.marks {
				if s.marks[i] != nil {
					forget(s.marks[i])
				}
			}
		}
	}
}

func (m *mark) forgetGrant()  { m.granted = 0 }
func (m *mark) forgetSeats()  { m.answered, m.placed, m.stayed = 0, 0, 0 }
func (m *mark) forgetTuning() { m.tuned = 0 }

func (s *state) broken(component string, id JobID, rule, format string, args ...any) error {
	jobName := ""
	if j := s.view.Job(id); j != nil {
		jobName = j.Name
	}
	return &InvariantError{Component: component, Round: s.view.Round, Job: jobName, Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

func (s *state) takeResponses(component string, responses []Response) error {
	if len(responses) != len(s.stale) {
		return s.broken(component, -1, RuleAnswerForAsked, "%d responses for %d jobs", len(responses), len(s.stale))
	}
	for i := range responses {
		r := &responses[i]
		id := s.stale[i].ID
		if r.Job != id {
			return s.broken(component, id, RuleAnswerForAsked, "response %d is for job %d", i, r.Job)
		}
		if err := s.checkResponse(component, s.stale[i], r); err != nil {
			return err
		}
		if s.responses[id] == nil {
			s.responses[id] = new(Response)
		}
		*s.responses[id] = *r
		s.narrow(s.stale[i], s.responses[id])
		s.retries.cap(s.stale[i], s.responses[id])
	}
	return nil
}

func (s *state) takeVerdicts(component string, verdicts []Verdict) error {
	if err := s.checkVerdicts(component, verdicts); err != nil {
		return err
	}
	admitted := s.asked[:0]
	for _, j := range s.asked {
		if len(verdicts) == 0 || verdicts[0].Job != j.ID {
			admitted = append(admitted, j)
			continue
		}
		v := verdicts[0]
		verdicts = verdicts[1:]
		v.By = component
		switch v.Code {
		case Admit:
			admitted = append(admitted, j)
		case Reject:
			s.reject(j, v)
		default:
			if v.Reason == AwaitingResults {
				s.keepBack(j) // as after a restart, of which its reviewer knows and nobody else
			}
			s.expect(j, &v)
			if j.WaitingReason != v.Reason || s.expectsOther(&v) {
				j.WaitingReason = v.Reason
				s.view.journal.add(j.ID)
				s.reportVerdict(v)
			}
		}
	}
	s.asked = admitted
	return nil
}

func (s *state) checkVerdicts(component string, verdicts []Verdict) error {
	k := 0
	for _, j := range s.asked {
		if k < len(verdicts) && verdicts[k].Job == j.ID {
			k++
		}
	}
	if k < len(verdicts) {
		return s.broken(component, verdicts[k].Job, RuleAnswerForAsked,
			"verdict %d is for job %d, which was not asked about, was already answered, or is out of order", k, verdicts[k].Job)
	}
	for i := range verdicts {
		if err := s.checkAllowed(component, &verdicts[i], Admit, Defer, Reject); err != nil {
			return err
		}
	}
	return nil
}

// reportVerdict reports a verdict, its texts bounded: whoever reads the outputs is no part of the policy's.
func (s *state) reportVerdict(v Verdict) {
	v.Message, v.Unit = CleanText(v.Message, MaxText), CleanText(v.Unit, MaxText)
	if m := s.marks[v.Job]; m != nil {
		m.expected = v.ExpectedSeconds
	}
	s.report.Verdicts = append(s.report.Verdicts, v)
}

// checkAllowed refuses a verdict with a code other than these, with a reason outside the closed list, or with evidence
// that is no number.
func (s *state) checkAllowed(component string, v *Verdict, codes ...Code) error {
	if !slices.Contains(codes, v.Code) || int(v.Reason) >= len(reasonNames) {
		return s.broken(component, v.Job, RuleVerdictAllowed, "answers with code %v and reason %v", v.Code, v.Reason)
	}
	if !finite(v.Wanted) || !finite(v.Available) {
		return s.broken(component, v.Job, RuleVerdictAllowed, "wants %v, %v available", v.Wanted, v.Available)
	}
	if !amount(v.ExpectedSeconds) {
		return s.broken(component, v.Job, RuleVerdictAllowed, "expects nodes at %v", v.ExpectedSeconds)
	}
	return nil
}

func (s *state) checkGrants(component string, grants []Grant) error {
	round, groups := s.view.Round, false
	for i := range grants {
		g := &grants[i]
		j := s.view.Job(g.Job)
		if j == nil || j.State != Waiting && j.State != Running {
			return s.broken(component, g.Job, RuleAnswerForAsked, "grant for job %d, which is no candidate", g.Job)
		}
		m := s.marks[g.Job]
		if m.granted == round {
			return s.broken(component, g.Job, RuleAnswerOnce, "granted twice")
		}
		m.granted, m.grant, m.replicas = round, i, g.Replicas
		groups = groups || g.Group != 0
		if r := s.responses[g.Job]; g.Replicas < r.MinReplicas || g.Replicas > r.MaxReplicas {
			return s.broken(component, g.Job, RuleReplicasInRange, "granted %d replicas, can use %d..%d", g.Replicas, r.MinReplicas, r.MaxReplicas)
		}
		if g.Accelerator < AnyAccelerator || int(g.Accelerator) >= len(s.view.Cluster.Accelerators) {
			return s.broken(component, g.Job, RuleOneAccelerator, "granted accelerator type %d of %d", g.Accelerator, len(s.view.Cluster.Accelerators))
		}
		if err := s.checkProposed(component, g); err != nil {
			return err
		}
	}
	if groups {
		if err := s.checkGroups(component, grants); err != nil {
			return err
		}
	}
	return s.checkPinned(component, grants)
}

// checkPinned holds an allocator to what the pinned jobs hold.
func (s *state) checkPinned(component string, grants []Grant) error {
	if s.view.unpinned {
		return nil
	}
	for _, j := range s.running {
		if !j.MustStay(s.view.Cluster, s.responses[j.ID]) {
			continue
		}
		if m := s.marks[j.ID]; m.granted != s.view.Round || grants[m.grant].Replicas != j.Held {
			return s.broken(component, j.ID, RulePinnedStays, "does not grant it the %d devices that it holds", j.Held)
		}
	}
	return nil
}

// takeGap asks an allocator that certifies its answers for the gap of the last one; nil certifies none.
func (s *state) takeGap(component string, certifier Certifier) error {
	if certifier == nil {
		return nil
	}
	gap := certifier.GapRatio()
	if gap < 0 || gap > 1 {
		return s.broken(component, -1, RuleGapSane, "certifies a gap of %v", gap)
	}
	s.report.GapRatio = gap
	return nil
}

func (s *state) checkSeating(component string, grants []Grant, seating Seating) error {
	s.blocked = false
	if err := s.checkPlacements(component, grants, seating.Placed); err != nil {
		return err
	}
	for i := range seating.Unseated {
		v := &seating.Unseated[i]
		v.By = cmp.Or(v.By, component) // or of the backend
		if err := s.answersGrant(component, v.Job); err != nil {
			return err
		}
		if err := s.checkAllowed(component, v, Defer); err != nil {
			return err
		}
		if j := s.view.Jobs[v.Job]; j.MustStay(s.view.Cluster, s.responses[v.Job]) {
			return s.broken(component, v.Job, RulePinnedStays, "does not seat it")
		}
		m := s.marks[v.Job]
		m.verdict = i
		s.blocked = s.blocked || grants[m.grant].Blocking
	}
	if answers := len(seating.Placed) + len(seating.Unseated); answers != len(grants) {
		return s.broken(component, -1, RuleAnswerEveryGrant, "%d answers for %d grants", answers, len(grants))
	}
	return s.checkTogether(component, grants, seating.Placed)
}

// checkPlacement holds the placement of a job to its grant, and to what is free.
func (s *state) checkPlacement(component string, grants []Grant, p *Placement) error {
	g := &grants[s.marks[p.Job].grant]
	if got := Replicas(p.Seats); got != g.Replicas {
		return s.broken(component, p.Job, RuleGangComplete, "seated %d of %d replicas", got, g.Replicas)
	}
	c, job := s.view.Cluster, s.view.Jobs[p.Job]
	if p.Resources != nil && !(c.CountsResources && p.Resources.sane()) {
		return s.broken(component, p.Job, RuleResourcesSane, "gives each replica %v CPUs and %v GB", p.Resources.CPUs, p.Resources.MemoryGB)
	}
	if !s.occupancy.occupy(job, p) {
		rule, what := s.occupancy.lacking(job, p)
		return s.broken(component, p.Job, rule, "seats %s %s", s.describeSeats(p.Seats), what)
	}
	if !s.view.unpinned && job.MustStay(c, s.responses[p.Job]) && (p.Evicted || !SameSeats(p.Seats, job.Seats)) {
		return s.broken(component, p.Job, RulePinnedStays, "moves it from %s to %s", s.describeSeats(job.Seats), s.describeSeats(p.Seats))
	}
	return s.checkTypes(component, g, p)
}

// checkTypes holds the seats of a job to devices of a type that it was granted, and of one type where it does not mix them.
func (s *state) checkTypes(component string, g *Grant, p *Placement) error {
	c, job := s.view.Cluster, s.view.Jobs[p.Job]
	for _, seat := range p.Seats {
		accelerator := c.Nodes[seat.Node].Accelerator
		if seat.Devices == 0 {
			return s.broken(component, p.Job, RuleGangComplete, "a seat on node %q without devices", c.Nodes[seat.Node].Name)
		}
		if !job.MixesTypes && accelerator != c.Nodes[p.Seats[0].Node].Accelerator || g.Accelerator != AnyAccelerator && g.Accelerator != accelerator || !job.Accepts(c, accelerator) {
			return s.broken(component, p.Job, RuleOneAccelerator, "seated on %q", c.Accelerators[accelerator])
		}
	}
	return nil
}

// answersGrant notes that the placer answered for a job, and refuses a second answer or one for a job without a grant.
func (s *state) answersGrant(component string, id JobID) error {
	if s.view.Job(id) == nil || s.marks[id].granted != s.view.Round {
		return s.broken(component, id, RuleAnswerForAsked, "answers for job %d, which has no grant", id)
	}
	m := s.marks[id]
	if m.answered == s.view.Round {
		return s.broken(component, id, RuleAnswerOnce, "answered twice")
	}
	m.answered = s.view.Round
	return nil
}

func (s *state) checkTunings(component string, tunings []Tuning) error {
	for i := range tunings {
		t := &tunings[i]
		if s.view.Job(t.Job) == nil || s.marks[t.Job].placed != s.view.Round {
			return s.broken(component, t.Job, RuleAnswerForAsked, "tunes job %d, which has no devices", t.Job)
		}
		m := s.marks[t.Job]
		if m.tuned == s.view.Round {
			return s.broken(component, t.Job, RuleAnswerOnce, "tuned twice")
		}
		m.tuned, m.tuning = s.view.Round, i
		if t.BatchPerDevice < 0 || t.AccumulationSteps < 0 || !amount(t.LearningRateFactor) {
			return s.broken(component, t.Job, RuleTuningSane, "%+v", *t)
		}
		if n := len(t.BatchByReplica); n > 0 && (n != m.replicas || slices.Min(t.BatchByReplica) < 0) {
			return s.broken(component, t.Job, RuleTuningSane, "the batch is split %v over %d replicas", t.BatchByReplica, m.replicas)
		}
	}
	return nil
}

func (s *state) describeSeats(seats []Seat) string {
	var b strings.Builder
	for i, seat := range seats {
		if i > 0 {
			b.WriteByte(' ')
		}
		node := fmt.Sprintf("node#%d", seat.Node)
		if seat.Node >= 0 && int(seat.Node) < len(s.view.Cluster.Nodes) {
			node = s.view.Cluster.Nodes[seat.Node].Name
		}
		fmt.Fprintf(&b, "%s[%s]", node, seat.Devices)
	}
	return b.String()
}
