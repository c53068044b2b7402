package coretest

import (
	"context"
	"fmt"
	"runtime"

	"github.com/quartet-sched/quartet/core"
)

// The long run that a policy must survive without growing: jobs come every round and end soon after.
const (
	forgetRounds       = 240
	forgetJobsPerRound = 24
	forgetAfter        = 3 // rounds that a job lives
	// forgetBytes is what a policy may keep of an ended job: an entry in a table indexed by JobID, but no job.
	forgetBytes = 256
)

// forget compares what a pipeline grows by for each ended job with the policy and with a plain stage in its place.
func (s *subject[S]) forget(t TB) {
	policy, _ := s.create(t)
	plainly := growth(t, compose(plain{}))
	grown := growth(t, s.compose(policy, plain{}))
	if kept := grown - plainly; kept > forgetBytes {
		t.Errorf("keeps %.0f bytes of each ended job, want at most %d", kept, forgetBytes)
	}
	runtime.KeepAlive(policy)
}

// growth is the bytes that a pipeline keeps for each job that ended in the latter half of a long run.
func growth(t TB, stages core.Stages) float64 {
	c := &churn{}
	p := core.NewPipeline(MakeCluster().Nodes(8, "t4", 8).Obj(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
	for range forgetRounds / 2 {
		hold(t, p, c.step(), c)
	}
	before := heap()
	for range forgetRounds / 2 {
		hold(t, p, c.step(), c)
	}
	after := heap()
	runtime.KeepAlive(p)
	return (float64(after) - float64(before)) / (forgetRounds / 2 * forgetJobsPerRound)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // the first one may leave what has a finaliser
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// churn is a backend whose jobs each live a few rounds, run or not.
type churn struct {
	round  int
	events []core.Event
}

func (c *churn) step() core.Observation {
	now := float64(60 * c.round)
	c.events = c.events[:0]
	for i := range forgetJobsPerRound {
		if id := core.JobID((c.round-forgetAfter)*forgetJobsPerRound + i); id >= 0 {
			c.events = append(c.events, core.Event{Kind: core.JobFailed, AtSeconds: now, Job: id})
		}
	}
	for i := range forgetJobsPerRound {
		id := core.JobID(c.round*forgetJobsPerRound + i)
		spec := MakeJob(fmt.Sprintf("job-%d", id)).ID(id).Submit(now).Replicas(1 + i%4).Work(300).Obj().JobSpec
		c.events = append(c.events, core.Event{Kind: core.JobSubmitted, AtSeconds: now, Job: id, Spec: spec})
	}
	c.round++
	return core.Observation{NowSeconds: now, Events: c.events}
}

// Next, of a churn, is called by hand.
func (c *churn) Next(context.Context, core.Wake) (core.Observation, error) { return c.step(), nil }

// Apply accepts everything.
func (c *churn) Apply(context.Context, []core.Change) error { return nil }

// Capabilities are none.
func (c *churn) Capabilities() []core.Capability { return nil }
