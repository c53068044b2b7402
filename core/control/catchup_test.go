package control

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// replaying is a backend that repeats rounds for a while.
type replaying struct {
	backend.Operated
	behind atomic.Bool
}

func (r *replaying) Replaying() bool { return r.behind.Load() }

// Nobody is told that there are no jobs by a scheduler that has not caught up.
func TestNobodyIsAnsweredDuringAReplay(t *testing.T) {
	r := &replaying{}
	r.behind.Store(true)
	s := NewServer(r, NewBoard(&core.Cluster{}), nil)
	soon, cancel := context.WithTimeout(t.Context(), 2*catchUpEvery)
	defer cancel()
	for name, ask := range map[string]func(context.Context) error{
		"nodes": func(ctx context.Context) error { _, err := s.Nodes(ctx, nil); return err },
		"describe": func(ctx context.Context) error {
			_, err := s.Describe(ctx, &controlv1.DescribeRequest{Job: "j"})
			return err
		},
	} {
		if err := ask(soon); err == nil {
			t.Errorf("%s is answered", name)
		}
	}
	time.AfterFunc(catchUpEvery, func() { r.behind.Store(false) })
	if _, err := s.Nodes(t.Context(), nil); err != nil {
		t.Errorf("after it: %v", err)
	}
	r.behind.Store(true)
	s.close()
	if _, err := s.Nodes(t.Context(), nil); status.Code(err) != codes.Unavailable {
		t.Errorf("while it ends: %v, want that it is not available", err)
	}
}
