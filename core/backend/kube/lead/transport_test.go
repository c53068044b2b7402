package lead

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// transport carries requests to the server, unless it blocks: then it waits for as long as the request may take.
type transport struct {
	server *server
	blocks atomic.Bool
	asked  atomic.Int64
}

func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	tr.asked.Add(1)
	if tr.blocks.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return tr.server.answer(r)
}

// Requests that are never answered do not keep a term valid, nor a write or a candidate from ending.
func TestTransportBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{server: &server{}}
		client := clientOver(tr)
		p := newProcess(tr.server, "a")
		defer p.end()
		o := p.options()
		o.Client = client
		o.Problem = func(err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
				p.kill()
			}
		}
		term, err := Run(p.ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), client, term, namespace, stateName, now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		tr.blocks.Store(true)
		began := now()
		if err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = number(5) }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that is not answered: %v", err)
		}
		if took := now().Sub(began); took > DefaultRenew || term.Valid() {
			t.Errorf("it took %v, the term is valid: %v", took, term.Valid())
		}
		asked := tr.asked.Load()
		if err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = number(6) }); !errors.Is(err, ErrNotRenewed) {
			t.Errorf("a write in a term that was not renewed: %v", err)
		}
		if got := tr.asked.Load(); got != asked {
			t.Errorf("it sent %d requests", got-asked)
		}
		other := newProcess(tr.server, "b")
		defer other.end()
		blocked := other.options()
		blocked.Client = client
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if got, err := Run(ctx, blocked); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a candidate: %v, %v", got, err)
		}
		tr.blocks.Store(false)
		time.Sleep(DefaultRenew)
		if err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = number(7) }); err != nil || numberOf(s.Kept().Snapshot) != 7 {
			t.Errorf("when it is answered again: %v", err)
		}
		p.kill()
		over(t, term, time.Second)
	})
}

// A term is not valid after a jump of the clock, in either direction, until it is renewed.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forth": 5 * time.Minute, "back": -5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			a, b := newProcess(s, "a"), newProcess(s, "b")
			defer a.end()
			defer b.end()
			term := within(t, a.leading(), time.Millisecond)
			kept, err := Open(t.Context(), a.client(), term, namespace, stateName, a.Now())
			if err != nil {
				t.Fatal(err)
			}
			next := b.leading()
			time.Sleep(2500 * time.Millisecond)
			before := s.writes()
			a.set(func(p *process) { p.shift = jump })
			if err := kept.Write(t.Context(), func(k *Kept) { k.Snapshot = number(1) }); !errors.Is(err, ErrNotRenewed) || s.writes() != before {
				t.Errorf("%s: a write after the jump: %v, %d writes", name, err, s.writes()-before)
			}
			time.Sleep(DefaultRetry)
			if err := kept.Write(t.Context(), func(k *Kept) { k.Snapshot = number(1) }); err != nil || term.Epoch != 1 {
				t.Errorf("%s: a write after a renewal: %v", name, err)
			}
			time.Sleep(time.Minute)
			if len(next) > 0 || !term.Valid() {
				t.Errorf("%s: another leads: %v, %v", name, len(next) > 0, term.Err())
			}
		})
	}
}
