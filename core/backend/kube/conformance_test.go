//go:build linux

package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
)

// unit is the tests' unit of time: longer than it takes to start a job on a machine that is busy.
const unit = 2 * time.Second

// The suite leaves out: orders, which are Kubernetes' own (File is not set); and a takeover that repeats the rounds, for here
// the jobs tell what was decided, and no rounds are kept (Restart is not set): see takeover_test.go.
func TestConformance(t *testing.T) { conform(t, false) }

// The same where devices are given by claims, each of which is looked at before its pod is bound.
func TestConformanceWithClaims(t *testing.T) { conform(t, true) }

func conform(t *testing.T, claims bool) {
	t.Parallel()
	shared(t)
	backendtest.Run(t, backendtest.Harness{UnitSeconds: unit.Seconds(), Open: func(t testing.TB, w backendtest.World) core.Backend {
		r := newRigOf(t, shared(t), claims)
		var wrap func(http.RoundTripper) http.RoundTripper
		if claims {
			wrap = (&notary{rig: r}).through
		}
		b := &suiteBackend{Backend: r.open(wrap), rig: r, left: len(w.Jobs), open: w.Open}
		later := w.Jobs
		for len(later) > 0 && later[0].SubmitSeconds == 0 {
			b.submit(later[0])
			later = later[1:]
		}
		var group sync.WaitGroup
		group.Go(func() {
			for _, j := range later {
				select {
				case <-t.Context().Done():
					return
				case <-time.After(time.Duration((j.SubmitSeconds - b.Present()) * float64(time.Second))):
					b.submit(j)
				}
			}
		})
		t.Cleanup(group.Wait)
		return b
	}})
}

// suiteBackend is the backend as the suite knows backends: its two nodes are there from the beginning, its jobs are called what the
// suite calls them, and when all of them have ended the run has.
type suiteBackend struct {
	*Backend
	rig   *rig
	nodes int
	left  int // jobs that have not ended
	open  bool
}

func (b *suiteBackend) submit(j backendtest.Job) {
	a := asked{replicas: j.Replicas}
	switch length := time.Duration(j.Seconds * float64(time.Second)); {
	case j.Seconds == backendtest.Endless:
	case j.Fails:
		a.fail = length
	default:
		a.run = length
	}
	b.rig.submit(j.Name, a)
}

func (b *suiteBackend) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	for {
		if b.left == 0 && !b.open {
			return core.Observation{}, io.EOF
		}
		var seen core.Observation
		if err := outlast(func() (err error) {
			seen, err = b.Backend.Next(ctx, w)
			return err
		}); err != nil {
			return seen, err
		}
		events := seen.Events
		seen.Events = nil
		for i := range events {
			e := &events[i]
			switch e.Kind {
			case core.NodeAdded:
				if name := b.rig.node(string("ab"[min(b.nodes, 1)])); e.Added.Name != name || int(e.Node) != b.nodes || e.Added.Devices != 2 {
					b.rig.Errorf("node %d is %+v, want %s with 2 devices", e.Node, *e.Added, name)
				}
				b.nodes++
				continue
			case core.JobSubmitted:
				spec := *e.Spec
				spec.Name = strings.TrimPrefix(spec.Name, b.rig.namespace+"/")
				e.Spec = &spec
			case core.JobFinished, core.JobFailed, core.JobCancelled:
				b.left--
			}
			seen.Events = append(seen.Events, *e)
		}
		if len(seen.Events) > 0 || len(events) == 0 {
			return seen, nil
		}
	}
}

func (b *suiteBackend) Apply(ctx context.Context, changes []core.Change) error {
	for i := range changes {
		if j := b.job(changes[i].Job); (changes[i].Action == core.Discard || changes[i].Action == core.Finish) && j != nil && !j.ended {
			b.left--
		}
	}
	return outlast(func() error { return b.Backend.Apply(ctx, changes) })
}

// outlast calls until the backend is available, as a pipeline does.
func outlast(call func() error) error {
	for {
		err := call()
		if _, passes := errors.AsType[*core.Unavailable](err); !passes {
			return err
		}
		time.Sleep(look)
	}
}
