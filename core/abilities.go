package core

import (
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

// ConfigAbilities is what the config of a policy can tell besides its settings: ConfigAbilitiesOf finds it out once. A field is nil where the
// config cannot.
type ConfigAbilities struct {
	TakesTurns      TakesTurns      // how long a job that takes turns keeps its devices
	NeedsInterval   NeedsInterval   // how often rounds must be held for turns to end in time
	PlansDeadlines  PlansDeadlines  // what pause plans for deadlines count at a change of devices
	CountsRestart   CountsRestart   // what pause the policy counts for every restart
	CountsFractions CountsFractions // that the policy counts parts of devices
}

// ConfigAbilitiesOf finds out what the config of a policy can tell; nothing for nil.
func ConfigAbilitiesOf(config any) (a ConfigAbilities) {
	a.TakesTurns, _ = config.(TakesTurns)
	a.NeedsInterval, _ = config.(NeedsInterval)
	a.PlansDeadlines, _ = config.(PlansDeadlines)
	a.CountsRestart, _ = config.(CountsRestart)
	a.CountsFractions, _ = config.(CountsFractions)
	return a
}
