package configs

import "github.com/quartet-sched/quartet/core"

// abilities is what the config of a policy can tell besides its settings: abilitiesOf finds it out once. A field is nil where the
// config cannot.
type abilities struct {
	TakesTurns      core.TakesTurns      // how long a job that takes turns keeps its devices
	NeedsInterval   core.NeedsInterval   // how often rounds must be held for turns to end in time
	PlansDeadlines  core.PlansDeadlines  // what pause plans for deadlines count at a change of devices
	CountsRestart   core.CountsRestart   // what pause the policy counts for every restart
	CountsFractions core.CountsFractions // that the policy counts parts of devices
}

// abilitiesOf finds out what the config of a policy can tell; nothing for nil.
func abilitiesOf(config any) (a abilities) {
	a.TakesTurns, _ = config.(core.TakesTurns)
	a.NeedsInterval, _ = config.(core.NeedsInterval)
	a.PlansDeadlines, _ = config.(core.PlansDeadlines)
	a.CountsRestart, _ = config.(core.CountsRestart)
	a.CountsFractions, _ = config.(core.CountsFractions)
	return a
}
