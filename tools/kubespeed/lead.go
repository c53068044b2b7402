//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
)

const leadArgument = "lead"

// clock is the clock of this machine.
type clock struct{}

func (clock) Now() time.Time                         { return time.Now() } //nolint:forbidigo // a clock is what it is
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func now() time.Time                         { return clock{}.Now() }
func after(d time.Duration) <-chan time.Time { return clock{}.After(d) }

// figures are what a controller tells of itself when it ends.
type figures struct {
	Rounds      int
	Median, Max float64 // seconds of a round, without the API's time
	API         float64 // seconds of the longest write of what a round decided
}

// lead is the controller: lead KUBECONFIG NAMESPACE PROFILES CLASS, the latter two may be empty. It prints a line when it leads, and figures when it is interrupted.
func lead(args []string) error {
	if len(args) != 4 {
		return errors.New("lead KUBECONFIG NAMESPACE PROFILES CLASS")
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	opener, err := create(kube.New(clock{}), map[string]any{"kubeconfig": args[0], "namespace": args[1], "watch": args[1], "device_class": args[3]}, log)
	if err != nil {
		return err
	}
	queue, err := create(allocation.NewFIFO(), nil, log)
	if err != nil {
		return err
	}
	admit, err := create(admission.NewAcceptAll(), nil, log)
	if err != nil {
		return err
	}
	tune, err := create(elasticity.NewFixed(), nil, log)
	if err != nil {
		return err
	}
	stages := core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/accept_all", Policy: admit}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/fifo", Policy: queue},
		Placement:  core.Component[core.Placer]{ID: "placement/spread", Policy: &spread{}},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/fixed", Policy: tune},
	}
	opened, err := opener.Open(ctx, &core.Cluster{MayGrow: true}, &workload.Workload{Open: true})
	if err != nil {
		return err
	}
	b := &timed{Backend: opened.(*kube.Backend)}
	p := core.NewPipeline(&core.Cluster{MayGrow: true}, stages, core.PipelineOptions{
		Rounds:    core.RoundOptions{IntervalSeconds: 10, OnEvents: true},
		Observers: []core.Observer{b.Backend},
		RetryBackend: func(ctx context.Context, tries int, err error) error {
			if tries == 1 {
				log.Warn("the API server", "error", err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-after(100 * time.Millisecond):
				return nil
			}
		},
	})
	if args[2] != "" {
		end, err := profile(args[2])
		if err != nil {
			return err
		}
		defer end()
	}
	err = p.Run(ctx, b)
	if ctx.Err() == nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(b.figures()); err != nil {
		return err
	}
	return b.Close()
}

// profile writes a profile of the processor, and one of the memory at the end.
func profile(prefix string) (end func(), err error) {
	cpu, err := os.Create(prefix + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = cpu.Close()
		heap, err := os.Create(prefix + ".heap")
		if err != nil {
			return
		}
		defer heap.Close()
		runtime.GC()
		_ = pprof.WriteHeapProfile(heap)
	}, nil
}

func create[S any](f core.Factory[S], raw map[string]any, log *slog.Logger) (none S, err error) {
	config, problems := f.Decode(raw)
	if len(problems) > 0 {
		return none, problems
	}
	return f.New(config, core.Settings{ID: f.Type, Rand: core.NewRand(1, f.Type), Log: log})
}

// timed measures rounds.
type timed struct {
	*kube.Backend
	led    bool
	began  time.Time // of the round; zero before the first
	api    time.Duration
	rounds []time.Duration
	most   time.Duration // of the API's time
}

// Next ends a round, and begins another.
func (b *timed) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if !b.began.IsZero() {
		b.rounds = append(b.rounds, now().Sub(b.began)-b.api)
		b.most = max(b.most, b.api)
	}
	seen, err := b.Backend.Next(ctx, w)
	if !b.led && err == nil {
		b.led = true
		fmt.Println("leads")
	}
	b.began, b.api = now(), 0
	return seen, err
}

// Apply is the API's time of a round.
func (b *timed) Apply(ctx context.Context, changes []core.Change) error {
	began := now()
	defer func() { b.api += now().Sub(began) }()
	return b.Backend.Apply(ctx, changes)
}

func (b *timed) figures() figures {
	if len(b.rounds) == 0 {
		return figures{}
	}
	slices.Sort(b.rounds)
	return figures{Rounds: len(b.rounds), Median: b.rounds[len(b.rounds)/2].Seconds(), Max: b.rounds[len(b.rounds)-1].Seconds(), API: b.most.Seconds()}
}

// spread places each replica on a node of its own, on the nodes in turn, so that each is a pod. No policy of Quartet does that:
// those that come with it want few nodes for a job.
type spread struct{ next core.NodeID }

func (s *spread) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	var seating core.Seating
	var free core.Ledger
	free.Reset(v.Cluster)
	stays := map[core.JobID]bool{}
	for _, g := range grants {
		if j := v.Job(g.Job); j.Held == g.Replicas && free.Occupy(j.Seats) {
			seating.Placed = append(seating.Placed, core.Placement{Job: g.Job, Seats: j.Seats})
			stays[g.Job] = true
		}
	}
	count := core.NodeID(len(v.Cluster.Nodes))
	for _, g := range grants {
		if stays[g.Job] {
			continue
		}
		p := core.Placement{Job: g.Job}
		for range count {
			if len(p.Seats) == g.Replicas {
				break
			}
			n := s.next % count
			s.next = (n + 1) % count
			if seat := free.Take(n, 1); seat.Devices != 0 {
				p.Seats = append(p.Seats, seat)
			}
		}
		if len(p.Seats) < g.Replicas {
			seating.Unseated = append(seating.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			free.Release(p.Seats)
			continue
		}
		slices.SortFunc(p.Seats, func(a, b core.Seat) int { return int(a.Node - b.Node) })
		seating.Placed = append(seating.Placed, p)
	}
	return seating, nil
}
