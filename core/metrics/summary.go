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
	Schema     string     `json:"schema"`             // name and version of the format, SummarySchema
	Name       string     `json:"name"`               // name of the run
	Seed       uint64     `json:"seed"`               // seed of the run
	Components Components `json:"components"`         // those that decided last
	Measured   *Window    `json:"measured,omitempty"` // nil for all jobs

	Jobs             JobCounts     `json:"jobs"`              // submitted jobs by outcome
	JCTSeconds       Distribution  `json:"jct_seconds"`       // seconds from submission to completion, of completed jobs
	QueueingSeconds  Distribution  `json:"queueing_seconds"`  // seconds from submission to the first start, of jobs that started
	MakespanSeconds  Number        `json:"makespan_seconds"`  // seconds from the first submission to the last end
	UtilizationRatio Number        `json:"utilization_ratio"` // held device time over usable device time, 0 to 1
	GPUHours         Number        `json:"gpu_hours"`         // device hours that jobs held
	Restarts         Restarts      `json:"restarts"`          // starts and moves after first starts
	Preemptions      int           `json:"preemptions"`       // stops of running jobs by decision of the scheduler
	Fairness         Fairness      `json:"fairness"`          // how fair the finish times of the jobs were
	Rounds           int           `json:"rounds"`            // number of rounds that were held
	WallSeconds      Number        `json:"wall_seconds"`      // seconds the run took on the wall clock; differs from run to run
	DecisionSeconds  DecisionTimes `json:"decision_seconds"`  // seconds the policies took; differs from run to run
	GapRatio         Gap           `json:"gap_ratio"`         // certified distance from the optimum
	Plugins          []Trouble     `json:"plugins,omitempty"` // of components that failed and were survived

	// Earlier describes the components that decided before others took over, oldest first.
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
	Component string `json:"component"` // id of the component
	Restarts  int    `json:"restarts"`  // how often its process was started again
	Fallback  bool   `json:"fallback"`  // the built-in policy took over
	Reason    string `json:"reason"`    // of the last failure
}

// Components says which component was in each slot, by component id.
type Components struct {
	Workload   string   `json:"workload"`   // id of the workload
	Admission  []string `json:"admission"`  // ids of the admission policies, in order
	Allocation string   `json:"allocation"` // id of the allocation policy
	Placement  string   `json:"placement"`  // id of the placement policy
	Elasticity string   `json:"elasticity"` // id of the elasticity policy of jobs
	Scaler     string   `json:"scaler"`     // id of the elasticity policy of the cluster
	Backend    string   `json:"backend"`    // id of the backend
}

// EarlierComponents are those that decided until others took over.
type EarlierComponents struct {
	Components
	UntilRound int `json:"until_round"` // the last that they decided; 0 for none
}

// JobCounts counts the submitted jobs by outcome.
type JobCounts struct {
	Submitted  int `json:"submitted"`           // all submitted jobs
	Completed  int `json:"completed"`           // jobs that finished their work
	Rejected   int `json:"rejected"`            // jobs that admission refused for good
	Failed     int `json:"failed"`              // jobs that ended with an error
	Cancelled  int `json:"cancelled,omitempty"` // only real backends have such jobs
	Unfinished int `json:"unfinished"`          // jobs that had not ended when the run did
}

// Restarts counts starts and moves after a job's first start. Mean is over the jobs that started.
type Restarts struct {
	Total int    `json:"total"` // restarts of all jobs
	Mean  Number `json:"mean"`  // restarts of a job that started, on average
}

// Fairness is finish-time fairness over the completed jobs whose exclusive run time is known.
type Fairness struct {
	RhoMean     Number `json:"rho_mean"`      // mean finish-time fairness rho
	RhoMax      Number `json:"rho_max"`       // largest finish-time fairness rho of a job
	UnfairRatio Number `json:"unfair_ratio"`  // part of the jobs with a rho above 1, 0 to 1
	Themis      Rho    `json:"themis"`        // rho by Themis' definition
	Sia         *Rho   `json:"sia,omitempty"` // nil when the run times of jobs alone were not asked for
}

// Rho is one measure of finish-time fairness. UnfairRatio is the share of the jobs above 1.
type Rho struct {
	Mean        Number `json:"mean"`         // mean of the jobs
	Max         Number `json:"max"`          // largest of the jobs
	UnfairRatio Number `json:"unfair_ratio"` // part of the jobs above 1, 0 to 1
}

// AcceleratorUse is what a run made of the devices of one type.
type AcceleratorUse struct {
	Accelerator              string `json:"accelerator"`                 // name of the accelerator type
	Devices                  int    `json:"devices"`                     // devices of this type in the cluster
	DeviceSeconds            Number `json:"device_seconds"`              // device seconds that jobs held
	UtilizationRatio         Number `json:"utilization_ratio"`           // held over usable device time of this type, 0 to 1
	GPUHours                 Number `json:"gpu_hours"`                   // device hours that jobs held
	Jobs                     int    `json:"jobs"`                        // that ever held one
	Starts                   int    `json:"starts"`                      // and moves, that gave a job some
	FirstJobs                int    `json:"first_jobs"`                  // that first ran on this type
	QueueingSecondsMean      Number `json:"queueing_seconds_mean"`       // mean queueing delay of FirstJobs, in seconds
	BoundJobs                int    `json:"bound_jobs"`                  // that can run on no other type of the cluster, rejected ones left out
	BoundQueueingSecondsMean Number `json:"bound_queueing_seconds_mean"` // of those that started
}

// Gap is the certified gap of the allocator's answers, over those that it certified.
type Gap struct {
	Mean Number `json:"mean"` // mean gap, as a part of the bound
	Max  Number `json:"max"`  // largest gap, as a part of the bound
}

// DecisionTimes is the time that the stages took, over the rounds held. It differs from run to run.
type DecisionTimes struct {
	Mean        Number          `json:"mean"`         // seconds a round, on average
	P99         Number          `json:"p99"`          // seconds that 99 % of the rounds did not exceed
	Max         Number          `json:"max"`          // seconds of the slowest round
	ByComponent []ComponentTime `json:"by_component"` // times of each component, in the order of the round
}

// ComponentTime is the time one component took in one step of the round.
type ComponentTime struct {
	Component string `json:"component"` // id of the component
	Stage     string `json:"stage"`     // step of the round
	Mean      Number `json:"mean"`      // seconds a round, on average
	Max       Number `json:"max"`       // seconds of its slowest round
}

// Distribution describes a sample. Its quantiles are empirical: the smallest value that at least the given share of
// the sample does not exceed, so each is a value that occurred. All are NaN for an empty sample.
type Distribution struct {
	Mean Number `json:"mean"` // arithmetic mean of the values
	P50  Number `json:"p50"`  // median of the values
	P90  Number `json:"p90"`  // 90 % quantile
	P95  Number `json:"p95"`  // 95 % quantile
	P99  Number `json:"p99"`  // 99 % quantile
	Max  Number `json:"max"`  // largest of the values
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
