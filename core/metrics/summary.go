package metrics

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
)

// SummarySchema names the form of a Summary. It changes when a field changes its meaning or goes away.
const SummarySchema = "quartet.summary/v1"

// Summary is what a run came to, as in summary.json. A number that cannot be known is NaN here and null there.
type Summary struct {
	Schema     string     `json:"schema"`
	Name       string     `json:"name"`
	Seed       uint64     `json:"seed"`
	Components Components `json:"components"`         // those that decided last
	Measured   *Window    `json:"measured,omitempty"` // nil for all jobs

	Jobs             JobCounts     `json:"jobs"`
	JCTSeconds       Distribution  `json:"jct_seconds"`
	QueueingSeconds  Distribution  `json:"queueing_seconds"`
	MakespanSeconds  Number        `json:"makespan_seconds"`
	UtilizationRatio Number        `json:"utilization_ratio"`
	GPUHours         Number        `json:"gpu_hours"`
	Restarts         Restarts      `json:"restarts"`
	Preemptions      int           `json:"preemptions"`
	Fairness         Fairness      `json:"fairness"`
	Rounds           int           `json:"rounds"`
	WallSeconds      Number        `json:"wall_seconds"`
	DecisionSeconds  DecisionTimes `json:"decision_seconds"`
	GapRatio         Gap           `json:"gap_ratio"`
	Plugins          []Trouble     `json:"plugins,omitempty"` // of components that failed and were survived

	// Earlier tells of the components that decided before others took over, oldest first.
	Earlier []EarlierComponents `json:"earlier_components,omitempty"`

	// Accelerators is in the order of the cluster's types. It is empty when all devices are of one type.
	Accelerators []AcceleratorUse `json:"accelerators,omitempty"`

	// Pools is in the order of the config. It is empty without pools.
	Pools []PoolUse `json:"pools,omitempty"`
	Bill  *Bill     `json:"bill,omitempty"` // of all of them; nil without pools

	Deadlines *Deadlines `json:"deadlines,omitempty"` // nil when no job has one
	Tiers     *Tiers     `json:"tiers,omitempty"`     // nil when no job has one

	Tuning     *Tuning     `json:"tuning,omitempty"`      // nil where no hyper-parameters are searched for
	Quality    *Quality    `json:"quality,omitempty"`     // nil when no job reports
	EndedEarly *EndedEarly `json:"ended_early,omitempty"` // nil when no job was

	Synthesizer *Synthesizer `json:"synthesizer,omitempty"` // nil where the run kept to one composition
}

// Trouble is what a component in a process of its own went through in a run that went on all the same.
type Trouble struct {
	Component string `json:"component"`
	Restarts  int    `json:"restarts"`
	Fallback  bool   `json:"fallback"` // the built-in policy took over
	Reason    string `json:"reason"`   // of the last failure
}

// Components says which component was in each slot, by component id.
type Components struct {
	Workload   string   `json:"workload"`
	Admission  []string `json:"admission"`
	Allocation string   `json:"allocation"`
	Placement  string   `json:"placement"`
	Elasticity string   `json:"elasticity"`
	Scaler     string   `json:"scaler"`
	Backend    string   `json:"backend"`
}

// EarlierComponents are those that decided until others took over.
type EarlierComponents struct {
	Components
	UntilRound int `json:"until_round"` // the last that they decided; 0 for none
}

// JobCounts counts the submitted jobs by outcome.
type JobCounts struct {
	Submitted  int `json:"submitted"`
	Completed  int `json:"completed"`
	Rejected   int `json:"rejected"`
	Failed     int `json:"failed"`
	Cancelled  int `json:"cancelled,omitempty"` // only real backends have such jobs
	Unfinished int `json:"unfinished"`
}

// Restarts counts starts and moves after a job's first start. Mean is over the jobs that started.
type Restarts struct {
	Total int    `json:"total"`
	Mean  Number `json:"mean"`
}

// Fairness is finish-time fairness over the completed jobs whose exclusive run time is known.
type Fairness struct {
	RhoMean     Number `json:"rho_mean"`
	RhoMax      Number `json:"rho_max"`
	UnfairRatio Number `json:"unfair_ratio"`
	Themis      Rho    `json:"themis"`
	Sia         *Rho   `json:"sia,omitempty"` // nil when the run times of jobs alone were not asked for
}

// Rho is one measure of finish-time fairness. UnfairRatio is the share of the jobs above 1.
type Rho struct {
	Mean        Number `json:"mean"`
	Max         Number `json:"max"`
	UnfairRatio Number `json:"unfair_ratio"`
}

// AcceleratorUse is what a run made of the devices of one type.
type AcceleratorUse struct {
	Accelerator              string `json:"accelerator"`
	Devices                  int    `json:"devices"`
	DeviceSeconds            Number `json:"device_seconds"`
	UtilizationRatio         Number `json:"utilization_ratio"`
	GPUHours                 Number `json:"gpu_hours"`
	Jobs                     int    `json:"jobs"`                        // that ever held one
	Starts                   int    `json:"starts"`                      // and moves, that gave a job some
	FirstJobs                int    `json:"first_jobs"`                  // that first ran on this type
	QueueingSecondsMean      Number `json:"queueing_seconds_mean"`       // of FirstJobs
	BoundJobs                int    `json:"bound_jobs"`                  // that can run on no other type of the cluster, rejected ones left out
	BoundQueueingSecondsMean Number `json:"bound_queueing_seconds_mean"` // of those that started
}

// Gap is the certified gap of the allocator's answers, over those that it certified.
type Gap struct {
	Mean Number `json:"mean"`
	Max  Number `json:"max"`
}

// DecisionTimes is the time that the stages took, over the rounds held. It differs from run to run.
type DecisionTimes struct {
	Mean        Number          `json:"mean"`
	P99         Number          `json:"p99"`
	Max         Number          `json:"max"`
	ByComponent []ComponentTime `json:"by_component"`
}

// ComponentTime is the time one component took in one step of the round.
type ComponentTime struct {
	Component string `json:"component"`
	Stage     string `json:"stage"`
	Mean      Number `json:"mean"`
	Max       Number `json:"max"`
}

// Distribution describes a sample. Its quantiles are empirical: the smallest value that at least the given share of
// the sample does not exceed, so each is a value that occurred. All are NaN for an empty sample.
type Distribution struct {
	Mean Number `json:"mean"`
	P50  Number `json:"p50"`
	P90  Number `json:"p90"`
	P95  Number `json:"p95"`
	P99  Number `json:"p99"`
	Max  Number `json:"max"`
}

// Describe sorts the sample and describes it.
func Describe(sample []float64) Distribution {
	if len(sample) == 0 {
		return Distribution{Mean: unknown, P50: unknown, P90: unknown, P95: unknown, P99: unknown, Max: unknown}
	}
	slices.Sort(sample)
	quantile := func(p float64) Number { return Number(stat.Quantile(p, stat.Empirical, sample, nil)) }
	return Distribution{
		Mean: Number(stat.Mean(sample, nil)),
		P50:  quantile(0.50), P90: quantile(0.90), P95: quantile(0.95), P99: quantile(0.99),
		Max: Number(sample[len(sample)-1]),
	}
}

// Number is a float64 whose NaN and infinities are null in JSON.
type Number float64

var unknown = Number(math.NaN())

// Known reports whether n is a finite number.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes the shortest decimal that reads back as n.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = unknown
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}
