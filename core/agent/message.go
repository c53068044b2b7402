package agent

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Protocol is the version spoken here.
const Protocol = 1

// MaxReplicas bounds the ranks of a job.
const MaxReplicas = 1_000_000

// mostAmount is more than anything that is measured, and leaves room to count with it.
const mostAmount = 1e30

// maxName bounds the name of a job and of a host, and maxToken a token, in bytes.
const (
	maxName  = 1024
	maxToken = 16 << 10
)

// maxMetric bounds the name of a metric, in bytes, and mostMetrics how many values are kept that could not be said yet.
const (
	maxMetric   = 128
	mostMetrics = 128
)

// FromJob is a line from a job: one or more messages, those that are not nil.
type FromJob struct {
	Hello        *Hello        `json:"hello,omitempty"`        // first line of a connection
	Report       *Report       `json:"report,omitempty"`       // how the job does
	Metrics      []Metric      `json:"metrics,omitempty"`      // values of metrics, in order; 128 at most
	Checkpointed *Checkpointed `json:"checkpointed,omitempty"` // a checkpoint is complete
	Done         *Done         `json:"done,omitempty"`         // all work is done
}

// ToJob is a line to a job.
type ToJob struct {
	Tuning     *Tuning     `json:"tuning,omitempty"`     // batch setting to use
	World      *World      `json:"world,omitempty"`      // replicas that the job has now
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"` // make a checkpoint
	Stop       *Stop       `json:"stop,omitempty"`       // make a checkpoint and exit
	Refused    *Refused    `json:"refused,omitempty"`    // why the connection ends
}

// Hello opens a connection: it is in its first line.
type Hello struct {
	Protocol int    `json:"protocol"`         // version that the job speaks
	Job      string `json:"job"`              // name of the job
	Rank     int    `json:"rank"`             // of the replica, from 0
	Worlds   bool   `json:"worlds,omitempty"` // the job takes another World while it runs; without it a resize starts it anew
	Token    string `json:"token,omitempty"`  // proves who speaks, where the scheduler asks for it; no event carries it
}

// Report is what a job sees of itself while it runs. A number is 0 as long as it is unknown.
type Report struct {
	Replicas         int     `json:"replicas"`          // on which the job runs
	Nodes            int     `json:"nodes"`             // on which these are
	BatchPerDevice   int     `json:"batch_per_device"`  // samples of a pass on a device
	PassSeconds      float64 `json:"pass_seconds"`      // of a pass over the batch of a device, without synchronisation
	StepSeconds      float64 `json:"step_seconds"`      // of a pass with it
	GradientSquare   float64 `json:"gradient_square"`   // squared norm of the expected gradient, at the initial batch
	GradientVariance float64 `json:"gradient_variance"` // at the initial batch
	Progress         float64 `json:"progress"`          // iterations at the initial batch, or whatever the job declared its work in
}

// Metric is a value of what a job follows, such as its loss. Those of a line are in the order in which they were computed.
type Metric struct {
	Name  string  `json:"name"`  // of the metric; 128 bytes at most
	Step  float64 `json:"step"`  // of the training, in any unit that grows, such as epochs or optimizer steps
	Value float64 `json:"value"` // of the metric at Step; NaN where it is not finite, which is null in JSON: worse than any number
}

// Checkpointed says that a checkpoint was completed: what was done up to Progress is not lost any more.
type Checkpointed struct {
	Progress float64 `json:"progress"` // that the checkpoint holds, in the unit of Report.Progress
}

// Done says that all work is done, before the job exits.
type Done struct{}

// Tuning is the batch setting to go on with, as core.Tuning has it. What is 0 or absent is left to the job.
type Tuning struct {
	BatchPerDevice     int     `json:"batch_per_device"`           // samples of a pass on a device
	AccumulationSteps  int     `json:"accumulation_steps"`         // passes before the last of a step, whose gradients are added up
	LearningRateFactor float64 `json:"learning_rate_factor"`       // of the learning rate, against that of the initial batch
	BatchByReplica     []int   `json:"batch_by_replica,omitempty"` // samples of a pass, by rank of the replica
}

// World is who the replicas of a job are after members joined or left while it runs: the members that stay form it anew at the
// end of a step, and lose nothing. A member is a process, or a pod, of one or more replicas of successive ranks.
type World struct {
	Generation int64  `json:"generation"` // of a run: the larger one holds
	Rank       int    `json:"rank"`       // of the first replica of the member that gets the message, from 0
	Replicas   int    `json:"replicas"`   // how many there are
	Nodes      int    `json:"nodes"`      // how many nodes they sit on
	Address    string `json:"address"`    // host of the lowest member, where all find each other
}

// Checkpoint asks for a checkpoint now.
type Checkpoint struct{}

// Stop asks the job to checkpoint and exit; it is killed when the grace is over.
type Stop struct {
	GraceSeconds float64 `json:"grace_seconds"` // after which the job is killed
}

// Refused says why the scheduler ends the connection.
type Refused struct {
	Message string `json:"message"` // in a sentence
}

// Validate reports everything that makes no sense.
func (m *FromJob) Validate() error {
	var p problems
	if h := m.Hello; h != nil {
		p.check(h.Protocol == Protocol, "hello: protocol %d is not spoken here, only %d", h.Protocol, Protocol)
		p.check(h.Job != "" && len(h.Job) <= maxName, "hello: job has %d bytes, must have from 1 to %d", len(h.Job), maxName)
		p.whole("hello: rank", h.Rank, 0, MaxReplicas-1)
		p.check(len(h.Token) <= maxToken, "hello: token has %d bytes, must have %d at most", len(h.Token), maxToken)
	}
	if r := m.Report; r != nil {
		p.whole("report: replicas", r.Replicas, 1, MaxReplicas)
		p.whole("report: nodes", r.Nodes, 1, max(r.Replicas, 1))
		p.whole("report: batch_per_device", r.BatchPerDevice, 0, math.MaxInt32)
		p.amount("report: pass_seconds", r.PassSeconds)
		p.amount("report: step_seconds", r.StepSeconds)
		p.amount("report: gradient_square", r.GradientSquare)
		p.amount("report: gradient_variance", r.GradientVariance)
		p.amount("report: progress", r.Progress)
	}
	p.check(len(m.Metrics) <= mostMetrics, "metrics: are %d, must be %d at most in a line", len(m.Metrics), mostMetrics)
	for i, v := range m.Metrics {
		p.check(v.Name != "" && len(v.Name) <= maxMetric, "metrics[%d]: name has %d bytes, must have from 1 to %d", i, len(v.Name), maxMetric)
		p.check(!strings.ContainsFunc(v.Name, unicode.IsControl), "metrics[%d]: name %q has control characters", i, v.Name)
		p.amount(fmt.Sprintf("metrics[%d]: step", i), v.Step)
	}
	if c := m.Checkpointed; c != nil {
		p.amount("checkpointed: progress", c.Progress)
	}
	return errors.Join(p...)
}

// Validate reports everything that makes no sense.
func (m *ToJob) Validate() error {
	var p problems
	if t := m.Tuning; t != nil {
		p.whole("tuning: batch_per_device", t.BatchPerDevice, 0, math.MaxInt32)
		p.whole("tuning: accumulation_steps", t.AccumulationSteps, 0, math.MaxInt32)
		p.amount("tuning: learning_rate_factor", t.LearningRateFactor)
		for i, b := range t.BatchByReplica {
			if b >= 0 && b <= math.MaxInt32 {
				continue // most are, and their names cost more than looking at them
			}
			p.whole(fmt.Sprintf("tuning: batch_by_replica[%d]", i), b, 0, math.MaxInt32)
		}
	}
	if w := m.World; w != nil {
		p.check(w.Generation >= 0, "world: generation is %d, must be from 0", w.Generation)
		p.whole("world: replicas", w.Replicas, 1, MaxReplicas)
		p.whole("world: rank", w.Rank, 0, max(w.Replicas, 1)-1)
		p.whole("world: nodes", w.Nodes, 1, max(w.Replicas, 1))
		p.check(len(w.Address) <= maxName, "world: address has %d bytes, must have %d at most", len(w.Address), maxName)
	}
	if s := m.Stop; s != nil {
		p.amount("stop: grace_seconds", s.GraceSeconds)
	}
	return errors.Join(p...)
}

type problems []error

func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (p *problems) whole(name string, value, least, most int) {
	p.check(value >= least && value <= most, "%s is %d, must be from %d to %d", name, value, least, most)
}

func (p *problems) amount(name string, value float64) {
	p.check(value >= 0 && value <= mostAmount, "%s is %v, must be a number from 0 to %v", name, value, mostAmount)
}
