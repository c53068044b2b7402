// Package sim is the simulated backend: a virtual clock, a queue of events, and jobs that progress by their models.
//
// It is exact and event-driven: a job ends at the very moment its work is done, its devices are free from then on,
// and nothing is computed while nothing happens. Where a publication's simulator behaves otherwise, Publication names
// the difference.
package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/interference"
	"github.com/quartet-sched/quartet/core/mig"
	"github.com/quartet-sched/quartet/core/restart"
)

// Config are the options of the simulated world. They belong to it, not to any policy.
type Config struct {
	restart.Cost

	// Resize: what it costs to change a job's devices without stopping it.
	Resize Resize `config:"resize" doc:"what it costs to change a job's devices without stopping it"`
	// TuneOverhead: pause of a job whose batch changes while it keeps its devices.
	TuneOverhead time.Duration `config:"tune_overhead" doc:"pause of a job whose batch changes while it keeps its devices" min:"0s"`
	// FreeFirstStart: spare a job the restart overhead when it starts for the first time.
	FreeFirstStart bool `config:"free_first_start" doc:"spare a job the restart overhead when it starts for the first time"`
	// LocalityPenalty: part of its rate that a job loses while it spans several nodes, for models that do not measure it, a ratio from 0 to 1.
	LocalityPenalty float64 `config:"locality_penalty" doc:"part of its rate that a job loses while it spans several nodes, for models that do not measure it" min:"0" max:"1"`
	// Interference: part of its rate that a job spanning nodes loses while another such job shares one of its nodes, a ratio from 0 to 1.
	Interference float64 `config:"interference" doc:"part of its rate that a job spanning nodes loses while another such job shares one of its nodes" min:"0" max:"1"`
	// CoLocation: how fast jobs are that share a device, where cluster.sharing lets them.
	CoLocation CoLocation `config:"co_location" doc:"how fast jobs are that share a device, where cluster.sharing lets them"`
	// Mig: what slices of devices do to jobs, where cluster.sharing is mig.
	Mig Mig `config:"mig" doc:"what slices of devices do to jobs, where cluster.sharing is mig"`
	// CheckpointInterval: a node failure throws a job back to its last multiple of this running time.
	CheckpointInterval time.Duration `config:"checkpoint_interval" doc:"a node failure throws a job back to its last multiple of this running time; 0 loses nothing" min:"0s"`
	// Failures: random node failures.
	Failures Failures `config:"failures" doc:"random node failures"`
	// NodeEvents: scheduled failures, repairs, drains and removals.
	NodeEvents []NodeEvent `config:"node_events" doc:"scheduled failures, repairs, drains and removals"`
	// JoiningNodes: nodes that join while the run is in progress, one item for each group of equal nodes.
	JoiningNodes []JoiningNodes `config:"joining_nodes" doc:"nodes that join while the run is in progress, one item for each group of equal nodes; until the last has joined, no job is rejected for being too large"`
	// Pools: what it takes for nodes of the cluster's pools to come and go.
	Pools []Pool `config:"pools" doc:"what it takes for nodes of the cluster's pools to come and go"`
	// StartDelay: how long the replicas of a job take to begin at each start and move, free ones too.
	StartDelay time.Duration `config:"start_delay" doc:"how long the replicas of a job take to begin at each start and move, free ones too; it holds its devices meanwhile, and restart_overhead comes after. A resize in place waits only for devices that are new to the job" min:"0s"`
	// StartDelaySpread: how much longer than start_delay that takes at most.
	StartDelaySpread time.Duration `config:"start_delay_spread" doc:"how much longer than start_delay that takes at most; how much is drawn evenly at each start and move" min:"0s"`
	// ReleaseDelay: how long a job that is stopped, moved or interrupted still holds the devices that it loses.
	ReleaseDelay time.Duration `config:"release_delay" doc:"how long a job that is stopped, moved or interrupted still holds the devices that it loses; one that will run on them begins afterwards, a job that restarts on its own as well. One that ends lets go at once" min:"0s"`
	// Outages: times in which the scheduler learns nothing and changes nothing, while jobs run on.
	Outages []Outage `config:"outages" doc:"times in which the scheduler learns nothing and changes nothing, while jobs run on"`
	// MeasurementNoise: how far what jobs report of their times is off.
	MeasurementNoise MeasurementNoise `config:"measurement_noise" doc:"how far what jobs report of their times is off; with any, they report anew at each round"`
	// StallAfter: end the run when no work was done, beyond what failures undid, and no job submitted for so long, unless node_events lie ahead, or nodes of pools that were asked for in that time.
	StallAfter time.Duration `config:"stall_after" doc:"end the run when no work was done, beyond what failures undid, and no job submitted for so long, unless node_events lie ahead, or nodes of pools that were asked for in that time; longer than any overhead" min:"1s"`
	// Publication: semantics of published simulators, for reproductions only.
	Publication Publication `config:"publication" doc:"semantics of published simulators, for reproductions only"`
}

// CoLocation is how fast jobs are that share a device.
type CoLocation struct {
	// Model: name of the model of interference between jobs on a device.
	Model string `config:"model" doc:"none: as fast as alone, for shares that are kept apart; turns: each has the device for its turns, by weight; hinge: all are slowed down once their utilisations add up to more than 0.85, as fitted to measured pairs; interleave: all make one iteration in a period, in which their stages interleave; table: as pairs of jobs were measured; guarantee: those that are not best effort are as fast as alone, the others have what these leave, and nobody pauses for another" enum:"none|turns|hinge|interleave|table|guarantee"`
	// SwitchRatio: with turns, part of a turn that the switch to it costs.
	SwitchRatio float64 `config:"switch_ratio" doc:"with turns, part of a turn that the switch to it costs" min:"0" max:"0.99"`
	// Period: with interleave, whether the period is the measured or the ideal one.
	Period string `config:"period" doc:"with interleave, measured: as long as on the cluster of Muri, 31 to 48 % longer than its stages need; ideal: as long as these" enum:"measured|ideal"`
	// Table: with table, file of measured pairs, instead of those of the workload: CSV or JSON as throughputs_path of workload gavel.
	Table string `config:"table" doc:"with table, file of measured pairs, instead of those of the workload: CSV or JSON as throughputs_path of workload gavel"`
	// OwnerLoss: with guarantee, part of its rate that an owner loses beside opportunistic jobs, a ratio from 0 to 1.
	OwnerLoss float64 `config:"owner_loss" doc:"with guarantee, part of its rate that an owner loses beside opportunistic jobs" min:"0" max:"1"`
	// SpillLoss: with guarantee, part of its rate that an opportunistic job loses all of whose memory is on the host, where cluster.oversubscribe_memory puts it there, a ratio from 0 to 1.
	SpillLoss float64 `config:"spill_loss" doc:"with guarantee, part of its rate that an opportunistic job loses all of whose memory is on the host, where cluster.oversubscribe_memory puts it there; in proportion to the part that is" min:"0" max:"1"`
	// Unknown: with table, name of the model for pairs that were not measured.
	Unknown string `config:"unknown" doc:"with table, model for jobs of which no pair was measured" enum:"none|turns|hinge"`
}

// The values of CoLocation.
const (
	byTable        = "table"
	interleaved    = "interleave"
	guaranteed     = "guarantee"
	measuredPeriod = "measured"
	idealPeriod    = "ideal"
)

// model is the one of the config.
func (c *CoLocation) model() interference.Model {
	if c.Model == byTable {
		return interference.Table{Unknown: c.named(c.Unknown)}
	}
	return c.named(c.Model)
}

// named is the model of a name that knows no pairs.
func (c *CoLocation) named(name string) interference.Model {
	switch name {
	case "turns":
		return interference.Turns{SwitchRatio: c.SwitchRatio}
	case "hinge":
		return interference.UsualHinge()
	case interleaved:
		if c.Period == idealPeriod {
			return interference.Interleave{}
		}
		return interference.MeasuredInterleave()
	case guaranteed:
		model := interference.UsualGuarantee()
		model.Cost, model.Spill = c.OwnerLoss, c.SpillLoss
		return model
	}
	return interference.None{}
}

// Mig is what slices of devices do to jobs. Jobs on one device do not notice each other.
type Mig struct {
	// Repartition: pause of a start or move to a slice that the device is not divided into yet.
	Repartition time.Duration `config:"repartition" doc:"pause of a start or move to a slice that the device is not divided into yet; slices beside it continue" min:"0s"`
	// Power: a job without a measured rate has (compute slices / 7)^power of its rate on a whole device: 1 as many times less as it has fewer slices, 0 for work that was measured on the slice, a ratio from 0 to 1.
	Power float64 `config:"power" doc:"a job without a measured rate has (compute slices / 7)^power of its rate on a whole device: 1 as many times less as it has fewer slices, 0 for work that was measured on the slice" min:"0" max:"1"`
	// Rates: measured rates on slices, against a whole device.
	Rates []SliceRate `config:"rates" doc:"measured rates on slices, against a whole device"`
}

// SliceRate is a measured rate on slices of a profile.
type SliceRate struct {
	// Application: name of the application.
	Application string `config:"application" doc:"name of the application; empty for all that have no rate of their own"`
	// Profile: MIG profile of the slice, such as 3g.
	Profile string `config:"profile" doc:"profile of the slice" enum:"1g|2g|3g|4g|7g"`
	// Rate: part of the rate on a whole device.
	Rate float64 `config:"rate" doc:"part of the rate on a whole device" min:"0" max:"10"`
}

// Resize says whether a job that keeps a device while it gets others, or gives some up, goes on in place: the replicas that
// stay hold the model in memory, and those that join receive it from them. Like a start, a resize counts as a checkpoint.
type Resize struct {
	// InPlace: a job that keeps one of its devices is not restarted.
	InPlace bool `config:"in_place" doc:"a job that keeps one of its devices is not restarted"`
	// Keep: a job that stays on a node keeps there what it can of its devices, whichever the placer names, as on engines with jobs that are resized while they run.
	Keep bool `config:"keep_devices" doc:"a job that stays on a node keeps there what it can of its devices, whichever the placer names, as on engines with jobs that are resized while they run"`
	// Overhead: its pause with in_place, at most the restart overhead.
	Overhead time.Duration `config:"overhead" doc:"its pause with in_place, at most the restart overhead; what is left of an earlier pause runs on meanwhile" min:"0s"`
}

// MeasurementNoise says how far reports of step times are off. Jobs run at their true speed all the same.
type MeasurementNoise struct {
	// Spread: standard deviation of the logarithm of the times.
	Spread float64 `config:"spread" doc:"standard deviation of the logarithm of the times" min:"0" max:"10"`
	// Outliers: part of the reports that are outlier_factor times too slow, a ratio from 0 to 1.
	Outliers float64 `config:"outliers" doc:"part of the reports that are outlier_factor times too slow" min:"0" max:"1"`
	// OutlierFactor: how much too slow outliers are.
	OutlierFactor float64 `config:"outlier_factor" doc:"how much too slow outliers are" min:"1" max:"1000"`
	// FirstFactor: how much too slow a job's first report of each configuration is.
	FirstFactor float64 `config:"first_factor" doc:"how much too slow a job's first report of each configuration is" min:"1" max:"1000"`
}

// any reports whether there is noise at all.
func (n *MeasurementNoise) any() bool {
	return n.Spread > 0 || n.Outliers > 0 && n.OutlierFactor > 1 || n.FirstFactor > 1
}

// Failures makes every node fail at random.
type Failures struct {
	// MTBF: mean time between failures of one node, exponentially distributed.
	MTBF time.Duration `config:"mtbf" doc:"mean time between failures of one node, exponentially distributed; 0 for none" min:"0s"`
	// Repair: mean time to repair, exponentially distributed.
	Repair time.Duration `config:"repair" doc:"mean time to repair, exponentially distributed" min:"0s"`
}

// NodeEvent changes the health of a node at a moment.
type NodeEvent struct {
	// Node: name of the node.
	Node string `config:"node" doc:"name of the node"`
	// At: moment, since the start of the run.
	At time.Duration `config:"at" doc:"moment, since the start of the run" min:"0s"`
	// To: state of the node from then on: ready, draining, down or gone.
	To string `config:"to" doc:"state from then on: down stops its jobs at once, draining lets the next round move them, gone is down for good and takes the node from the cluster" enum:"ready|draining|down|gone"`
}

// JoiningNodes are equal nodes that join the cluster at a moment.
type JoiningNodes struct {
	// At: moment, since the start of the run.
	At time.Duration `config:"at" doc:"moment, since the start of the run" min:"0s"`
	// Name: name of the node.
	Name string `config:"name" doc:"name of the node; more than one are called name-0, name-1, …"`
	// Count: number of nodes, 1 if left out.
	Count int `config:"count" doc:"number of nodes, 1 if left out" min:"0" max:"100000"`
	// Accelerator: accelerator type of its devices.
	Accelerator string `config:"accelerator" doc:"accelerator type of its devices; it may be new to the cluster"`
	// Devices: devices on each node, 1 to 64.
	Devices int `config:"devices" doc:"devices on each node, 1 to 64"`
	// CPUs: CPU cores of each node, counted with count_resources.
	CPUs float64 `config:"cpus" doc:"CPU cores of each node, counted with count_resources; 0: not known" min:"0"`
	// MemoryGB: memory of each node, counted with count_resources.
	MemoryGB float64 `config:"memory_gb" doc:"memory of each node, counted with count_resources; 0: not known" min:"0"`
	// DeviceMemoryGB: memory of each device, counted where devices are shared.
	DeviceMemoryGB float64 `config:"device_memory_gb" doc:"memory of each device, counted where devices are shared; 0: not known" min:"0"`
	// Rack: rack that the nodes stand in.
	Rack string `config:"rack" doc:"rack that the nodes stand in; recorded, no policy reads it yet"`
	// Provisioning: how long the nodes are being provisioned before they are ready.
	Provisioning time.Duration `config:"provisioning" doc:"how long the nodes are being provisioned before they are ready" min:"0s"`
}

// Outage is a time in which the backend is not available.
type Outage struct {
	// At: moment, since the start of the run.
	At time.Duration `config:"at" doc:"moment, since the start of the run; a round of that very moment is held, and what it decides comes into effect at the end" min:"0s"`
	// For: how long it lasts.
	For time.Duration `config:"for" doc:"how long it lasts" min:"0s"`
}

// Publication names the ways in which published simulators differ from the exact default.
type Publication struct {
	// FirstRound: moment of the first round: start or one_interval.
	FirstRound string `config:"first_round" doc:"start: rounds from second 0 on; one_interval: the first decision falls one interval after the start (Pollux)" enum:"start|one_interval"`
	// Progress: how jobs advance: exact, per_round, back_to_back or whole_steps.
	Progress string `config:"progress" doc:"exact: event by event; per_round: jobs advance round by round, and one that ends keeps its devices, and disturbs its neighbours, until the round is over (Pollux); back_to_back: rounds follow one another instead of a clock, jobs do the whole steps that fit an interval, and a round is over when the last of them is done (Gavel); whole_steps: jobs advance round by round by the whole units of their work that fit, and one that is done ends with its round (Synergy)" enum:"exact|per_round|back_to_back|whole_steps"`
	// EpochEnds: whether the time to the end of an epoch is exact or rounded to whole seconds.
	EpochEnds string `config:"epoch_ends" doc:"exact, or whole_seconds: the time to the end of an epoch is rounded, half to even, and the error lost (Pollux; with per_round)" enum:"exact|whole_seconds"`
	// Moves: whether every move costs a restart, or moves to devices alike are free.
	Moves string `config:"moves" doc:"restart, or free_alike: a running job that moves to as many devices of each of as many nodes of the same types continues without a pause (Sia)" enum:"restart|free_alike"`
	// Overhead: which events make jobs pause: their own starts and moves, changes on their devices, or every round.
	Overhead string `config:"overhead" doc:"at_starts: a job pauses at its own starts and moves; at_changes: all jobs on a device pause for the overheads of them together whenever another one joins or leaves; every_round: they do from each round on, but one that ends before the next does not wait for it (Muri)" enum:"at_starts|at_changes|every_round"`
	// Completion: whether a job ends at the exact moment or with the next round.
	Completion string `config:"completion" doc:"exact, or next_round: a job that ends holds its devices, and counts as running, until the next round (Blox)" enum:"exact|next_round"`
}

// The values of Publication.
const (
	atStart      = "start"
	exact        = "exact"
	oneInterval  = "one_interval"
	perRound     = "per_round"
	backToBack   = "back_to_back"
	wholeSteps   = "whole_steps"
	wholeSeconds = "whole_seconds"
	nextRound    = "next_round"
	restartMoves = "restart"
	freeAlike    = "free_alike"
	atStarts     = "at_starts"
	everyChange  = "at_changes"
	everyRound   = "every_round"
)

// byRounds reports whether jobs advance round by round.
func (p *Publication) byRounds() bool {
	return p.Progress == perRound || p.Progress == backToBack || p.Progress == wholeSteps
}

// leastRate is the least part of its rate that a job may have on a slice: with less, moments are beyond what the clock can tell apart.
const leastRate = 1e-6

// Validate reports every option that contradicts another.
func (c Config) Validate() error {
	return errors.Join(slices.Concat(c.checkPauses(), c.checkCoLocation(), c.checkPublication(), c.checkRates(), c.checkOverheads(), c.checkGrowth())...)
}

// problems collects what is wrong with a config.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// addWhere adds a problem where it is one.
func (p *problems) addWhere(wrong bool, format string, args ...any) {
	if wrong {
		p.add(format, args...)
	}
}

// checkPauses refuses failures without repair, and pauses that look like a stall.
func (c *Config) checkPauses() (found problems) {
	found.addWhere(c.Failures.MTBF > 0 && c.Failures.Repair <= 0, "failures.repair: must be positive when failures.mtbf is set")
	found.addWhere(c.RestartOverhead >= c.StallAfter, "stall_after: must be longer than restart_overhead")
	found.addWhere(c.TuneOverhead >= c.StallAfter, "tune_overhead: must be shorter than stall_after")
	found.addWhere(c.Resize.Overhead > 0 && !c.Resize.InPlace, "resize.overhead: needs resize.in_place")
	found.addWhere(c.Mig.Repartition >= c.StallAfter, "mig.repartition: must be shorter than stall_after")
	return found
}

// checkCoLocation refuses settings of another model than the one that is chosen.
func (c *Config) checkCoLocation() (found problems) {
	with := &c.CoLocation
	found.addWhere(with.Table != "" && with.Model != byTable, "co_location.table: needs co_location.model: table")
	found.addWhere(with.OwnerLoss > 0 && with.Model != guaranteed, "co_location.owner_loss: needs co_location.model: guarantee")
	found.addWhere(with.SpillLoss > 0 && with.Model != guaranteed, "co_location.spill_loss: needs co_location.model: guarantee")
	return found
}

// checkPublication refuses semantics of published simulators that contradict each other.
func (c *Config) checkPublication() (found problems) {
	p := &c.Publication
	found.addWhere(p.EpochEnds == wholeSeconds && p.Progress != perRound, "publication.epoch_ends: whole_seconds needs publication.progress: per_round")
	found.addWhere(p.byRounds() && p.Completion == nextRound, "publication.completion: next_round needs publication.progress: exact")
	found.addWhere(p.Progress == backToBack && p.FirstRound == oneInterval, "publication.first_round: one_interval needs rounds on a clock, not publication.progress: back_to_back")
	found.addWhere(c.FreeFirstStart && (p.Overhead == everyChange || p.Overhead == everyRound), "free_first_start: needs publication.overhead: at_starts")
	found.addWhere(p.Overhead == everyRound && p.byRounds(), "publication.overhead: every_round needs publication.progress: exact")
	return found
}

// checkRates refuses rates on slices that are listed twice, of no profile, or too small for a job to end.
func (c *Config) checkRates() (found problems) {
	for i, r := range c.Mig.Rates {
		at := fmt.Sprintf("mig.rates[%d]", i)
		same := func(o SliceRate) bool { return o.Application == r.Application && o.Profile == r.Profile }
		found.addWhere(slices.ContainsFunc(c.Mig.Rates[:i], same), "%s: %s of application %q is listed twice", at, r.Profile, r.Application)
		_, known := mig.ByName(r.Profile)
		found.addWhere(!known, "%s.profile: must be one of 1g, 2g, 3g, 4g and 7g", at)
		found.addWhere(r.Rate < leastRate, "%s.rate: must be at least %v, got %v: a job would never end", at, leastRate, r.Rate)
	}
	return found
}

// checkOverheads refuses overheads of applications that look like a stall, or are listed twice.
func (c *Config) checkOverheads() (found problems) {
	for i, o := range c.ApplicationOverhead {
		found.addWhere(o.Overhead >= c.StallAfter, "application_overhead[%d].overhead: must be shorter than stall_after", i)
	}
	return append(found, c.Cost.Validate())
}

// NewSimulator is the factory of the simulated backend.
func NewSimulator() core.Factory[backend.Opener] {
	return core.NewFactory(core.Info{
		Type:    "simulator",
		Summary: "a virtual cluster with an exact, event-driven clock",
		Description: "Jobs progress by the models of their workload. Costs, failures and interference are options of the " +
			"simulated world; the options under publication reproduce published simulators.",
	}, Config{
		StallAfter:       30 * 24 * time.Hour,
		CoLocation:       CoLocation{Model: "none", Period: measuredPeriod, Unknown: "hinge"},
		Mig:              Mig{Power: 1},
		MeasurementNoise: MeasurementNoise{OutlierFactor: 3, FirstFactor: 1},
		Publication: Publication{
			FirstRound: atStart, Progress: exact, EpochEnds: exact, Moves: restartMoves, Overhead: atStarts, Completion: exact,
		},
	}, func(c Config, s core.Settings) (backend.Opener, error) { return &opener{c, s}, nil })
}
