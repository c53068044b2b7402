package core

import (
	"context"
	"io"
	"slices"
)

// Abilities is what a policy can do besides answering for its stage: AbilitiesOf finds it out once, and whoever calls the policy goes by
// the value. A field is nil where the policy cannot.
type Abilities struct {
	Steady         Steady         // tells how long its answers stand
	CurveAdmitter  CurveAdmitter  // admits jobs by what they do with accelerators
	Promiser       Promiser       // may promise that deadlines are met
	Reviewer       Reviewer       // looks at admitted jobs as they go on
	Historian      Historian      // learns from how jobs end
	ReportFollower ReportFollower // may respond by what jobs report
	Guarantor      Guarantor      // guarantees device time to tiers of jobs
	Certifier      Certifier      // bounds what a better answer could gain
	OncePerRound   OncePerRound   // may have to be asked once a round
	Precedent      Precedent      // may grant in order of precedence
	SomeAllocator  SomeAllocator  // wants to know all candidates where it is asked about some
	ReservedKeeper ReservedKeeper // may seat nobody on devices that are reserved
	Recoverer      Recoverer      // can be asked again after an answer that broke a rule
	Snapshotter    Snapshotter    // learns, and can hand on what it learned
	Forker         Forker         // makes second instances of itself
	Files          FileReader     // has read files that its decisions depend on
	Discarder      Discarder      // can end without leaving what it learned
	Closer         io.Closer      // has something to close
}

// AbilitiesOf finds out what a policy can do; nothing for nil.
func AbilitiesOf(policy any) (a Abilities) {
	a.Steady, _ = policy.(Steady)
	a.CurveAdmitter, _ = policy.(CurveAdmitter)
	a.Promiser, _ = policy.(Promiser)
	a.Reviewer, _ = policy.(Reviewer)
	a.Historian, _ = policy.(Historian)
	a.ReportFollower, _ = policy.(ReportFollower)
	a.Guarantor, _ = policy.(Guarantor)
	a.Certifier, _ = policy.(Certifier)
	a.OncePerRound, _ = policy.(OncePerRound)
	a.Precedent, _ = policy.(Precedent)
	a.SomeAllocator, _ = policy.(SomeAllocator)
	a.ReservedKeeper, _ = policy.(ReservedKeeper)
	a.Recoverer, _ = policy.(Recoverer)
	a.Snapshotter, _ = policy.(Snapshotter)
	a.Forker, _ = policy.(Forker)
	a.Files, _ = policy.(FileReader)
	a.Discarder, _ = policy.(Discarder)
	a.Closer, _ = policy.(io.Closer)
	return a
}

// Promises reports whether the policy admits jobs with deadlines only if the deadlines will be met.
func (a *Abilities) Promises() bool { return a.Promiser != nil && a.Promiser.Promises() }

// FollowsReports reports whether the policy may respond otherwise once a job has reported.
func (a *Abilities) FollowsReports() bool {
	return a.ReportFollower != nil && a.ReportFollower.FollowsReports()
}

// AskedAgain reports whether an allocator may be asked again in a round.
func (a *Abilities) AskedAgain() bool { return a.OncePerRound == nil || !a.OncePerRound.AskedOnce() }

// Precedes reports whether the grants of an allocator come in order of precedence.
func (a *Abilities) Precedes() bool { return a.Precedent != nil && a.Precedent.Precedes() }

// KeepsReserved reports whether a placer seats nobody anew on devices that are reserved.
func (a *Abilities) KeepsReserved() bool {
	return a.ReservedKeeper != nil && a.ReservedKeeper.KeepsReserved()
}

// allocate asks an allocator about some of all candidates.
func (a *Abilities) allocate(ctx context.Context, policy Allocator, v *View, all, some []Candidate) ([]Grant, error) {
	if a.SomeAllocator != nil && len(some) > 0 && (len(some) != len(all) || &some[0] != &all[0]) {
		return a.SomeAllocator.AllocateSome(ctx, v, all, some)
	}
	return policy.Allocate(ctx, v, some)
}

// withAbilities is the same stages, with what their policies can do. The list of admission is a copy.
func (s Stages) withAbilities() Stages {
	s.Admission = slices.Clone(s.Admission)
	for i := range s.Admission {
		s.Admission[i].findAbilities()
	}
	s.Allocation.findAbilities()
	s.Placement.findAbilities()
	s.Elasticity.findAbilities()
	s.Scaler.findAbilities()
	return s
}

// findAbilities finds out what the policy can do.
func (c *Component[S]) findAbilities() { c.can = AbilitiesOf(c.Policy) }
