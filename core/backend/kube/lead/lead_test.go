package lead

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// leading starts a process that waits until it leads.
func (p *process) leading() <-chan *Term {
	got := make(chan *Term, 1)
	go func() {
		if term, err := Run(p.ctx, p.options()); err == nil {
			got <- term
		}
	}()
	return got
}

// within waits for a term, for as long as it may take.
func within(t *testing.T, terms <-chan *Term, limit time.Duration) *Term {
	t.Helper()
	select {
	case term := <-terms:
		return term
	case <-time.After(limit):
		t.Fatalf("nobody leads after %v", limit)
		return nil
	}
}

// over waits until a term is over.
func over(t *testing.T, term *Term, limit time.Duration) {
	t.Helper()
	select {
	case <-term.Done:
	case <-time.After(limit):
		t.Fatalf("the term is not over after %v", limit)
	}
	if err := term.Err(); !errors.Is(err, ErrFenced) || term.Valid() || term.Left() != 0 {
		t.Errorf("a term that is over: %v, valid %v, %v left", err, term.Valid(), term.Left())
	}
}

// A kill is followed by another leader within the lease and a look, a release within a look.
func TestFailover(t *testing.T) {
	cases := map[string]struct {
		end  func(*process)
		want time.Duration
	}{
		"killed":   {(*process).end, DefaultLease + DefaultRetry/looks},
		"released": {func(p *process) { p.kill() }, DefaultRetry / looks},
		"stopped":  {(*process).pause, DefaultLease + DefaultRetry/looks},
		"cut off":  {func(p *process) { p.set(func(p *process) { p.cut = true }) }, DefaultLease + DefaultRetry/looks},
	}
	for name, tc := range cases {
		// At any moment between two renewals.
		for _, after := range []time.Duration{0, 1, 100 * time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				a, b := newProcess(s, "a"), newProcess(s, "b")
				defer a.end()
				defer b.end()
				first := within(t, a.leading(), time.Millisecond)
				time.Sleep(130 * time.Millisecond)
				next := b.leading()
				time.Sleep(10*time.Second + after)
				tc.end(a)
				began := now()
				second := within(t, next, tc.want+time.Millisecond)
				t.Logf("%s %v after a renewal: %v", name, after, now().Sub(began))
				a.resume()
				if first.Epoch != 1 || second.Epoch != 2 || first.Valid() || !second.Valid() {
					t.Errorf("%s: epochs %d and %d, valid: %v and %v", name, first.Epoch, second.Epoch, first.Valid(), second.Valid())
				}
				if name == "stopped" {
					over(t, first, 2*DefaultRetry)
				}
			})
		}
	}
}

// A process that was stopped finds its term invalid at the first look, and writes nothing.
func TestStoppedLeaderWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		a, b := newProcess(s, "a"), newProcess(s, "b")
		defer a.end()
		defer b.end()
		first := within(t, a.leading(), time.Millisecond)
		old, err := Open(t.Context(), a.client(), first, namespace, stateName, a.Now())
		if err != nil {
			t.Fatal(err)
		}
		next := b.leading()
		time.Sleep(3 * time.Second)
		a.pause()
		second := within(t, next, 7*time.Second)
		taken, err := Open(t.Context(), b.client(), second, namespace, stateName, b.Now())
		if err != nil {
			t.Fatal(err)
		}
		before := s.writes()
		a.resume()
		if first.Valid() {
			t.Error("the term of a process that was stopped for longer than its lease is valid when it goes on")
		}
		err = old.Write(t.Context(), func(k *Kept) { k.Snapshot = number(99) })
		if !errors.Is(err, ErrNotRenewed) && !errors.Is(err, ErrFenced) || s.writes() != before {
			t.Errorf("its write: %v; %d writes", err, s.writes()-before)
		}
		over(t, first, 2*DefaultRetry)
		if err := old.Write(t.Context(), func(k *Kept) { k.Snapshot = number(99) }); !errors.Is(err, ErrFenced) {
			t.Errorf("its write after its term: %v", err)
		}
		// Even if its clock stood still while it was stopped: the epoch of the state is another's.
		asleep := &Term{Epoch: 1, Identity: first.Identity, clock: realClock{}, renew: time.Hour, renewed: now()}
		old.term = asleep
		if err := old.Write(t.Context(), func(k *Kept) { k.Snapshot = number(99) }); !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "in epoch 2, this is 1") {
			t.Errorf("its write with a clock that stood still: %v", err)
		}
		if _, err := Open(t.Context(), a.client(), asleep, namespace, stateName, a.Now()); !errors.Is(err, ErrFenced) {
			t.Errorf("it opens the state: %v", err)
		}
		if got := taken.Kept(); got.Snapshot != nil || got.Epoch != 2 {
			t.Errorf("the state is %+v", got)
		}
	})
}

// While the API server is away the term is not valid. Who led goes on with the same epoch, however many would take over.
func TestServerAway(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			a, b, c := newProcess(s, "a"), newProcess(s, "b"), newProcess(s, "c")
			for _, p := range [...]*process{a, b, c} {
				defer p.end()
			}
			term := within(t, a.leading(), time.Millisecond)
			next, other := b.leading(), c.leading()
			time.Sleep(10*time.Second + 300*time.Millisecond)
			s.setDown(true)
			time.Sleep(away)
			if want := away <= DefaultRenew-DefaultRetry; term.Valid() != want {
				t.Errorf("%v away: the term is valid: %v, want %v", away, term.Valid(), want)
			}
			if err := term.Err(); away > DefaultRenew && !errors.Is(err, ErrNotRenewed) {
				t.Errorf("%v away: %v", away, err)
			}
			s.setDown(false)
			time.Sleep(2 * DefaultRetry)
			if !term.Valid() || len(next) > 0 || len(other) > 0 {
				t.Errorf("%v away: the term is %v, others lead: %v", away, term.Err(), len(next)+len(other) > 0)
			}
			a.end()
			select {
			case term = <-next:
			case term = <-other:
			case <-time.After(DefaultLease + DefaultRetry/looks):
				t.Fatal("nobody leads")
			}
			if term.Epoch != 2 {
				t.Errorf("the next epoch is %d, want 2", term.Epoch)
			}
		})
	}
}

// A Lease that is deleted is not taken before its holder has to know, and no epoch comes twice, even for a process that never
// saw the Lease.
func TestLeaseDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var last *Term
		for round := range 5 {
			a := newProcess(s, "a")
			defer a.end()
			began := now()
			term := within(t, a.leading(), time.Minute)
			if last != nil {
				if last.Valid() {
					t.Fatal("two lead")
				}
				if waited := now().Sub(began); waited < DefaultLease {
					t.Errorf("the Lease is taken after %v, when its holder may not know that it is gone", waited)
				}
			}
			if term.Epoch != int64(round+1) {
				t.Errorf("epoch %d, want %d", term.Epoch, round+1)
			}
			if _, err := Open(t.Context(), a.client(), term, namespace, stateName, a.Now()); err != nil {
				t.Fatal(err)
			}
			s.remove("leases", leaseName)
			last = term
		}
	})
}

// What is done though its answer got lost is found out.
func TestAnswersLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		a := newProcess(s, "a")
		defer a.end()
		a.set(func(p *process) { p.lost = true })
		terms := a.leading()
		time.Sleep(3 * time.Second)
		a.set(func(p *process) { p.lost = false })
		term := within(t, terms, time.Second)
		if term.Epoch != 1 {
			t.Errorf("epoch %d, want 1", term.Epoch)
		}
		a.set(func(p *process) { p.lost = true })
		time.Sleep(5 * time.Second)
		if term.Valid() {
			t.Error("a term is valid though no renewal was answered")
		}
		a.set(func(p *process) { p.lost = false })
		time.Sleep(2 * time.Second)
		if !term.Valid() {
			t.Errorf("the term: %v", term.Err())
		}
		a.set(func(p *process) { p.lost = true })
		time.Sleep(1500 * time.Millisecond)
		a.set(func(p *process) { p.lost = false })
		a.kill()
		over(t, term, time.Second)
		if got := holder(s.lease()); got != "" {
			t.Errorf("%q holds the Lease after the release", got)
		}
	})
}

// Who stops waiting leaves no Lease behind that it did not know to hold.
func TestCancelledWhileTaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		a := newProcess(s, "a")
		defer a.end()
		a.set(func(p *process) { p.lost = true })
		o := a.options()
		failed := 0
		o.Problem = func(err error) {
			if failed++; failed == 3 {
				a.set(func(p *process) { p.lost = false })
				a.kill()
			}
		}
		// The look succeeds, and only the answer to the take gets lost.
		s.put("configmaps/"+stateName, stateOf(Kept{Epoch: 3}))
		if term, err := Run(a.ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", term, err)
		}
		if got := holder(s.lease()); got != "" {
			t.Errorf("%q holds the Lease", got)
		}
	})
}

func TestOptions(t *testing.T) {
	good := newProcess(&server{}, "a").options()
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no client":             {func(o *Options) { o.Client = nil }, "are needed"},
		"no identity":           {func(o *Options) { o.Identity = "" }, "are needed"},
		"parts of seconds":      {func(o *Options) { o.Lease += time.Millisecond }, "whole seconds"},
		"no lease":              {func(o *Options) { o.Lease = 0 }, "whole seconds"},
		"renewed too late":      {func(o *Options) { o.Renew = o.Lease }, "must ascend"},
		"retried too late":      {func(o *Options) { o.Retry = o.Renew }, "must ascend"},
		"retried all the while": {func(o *Options) { o.Retry = 0 }, "must ascend"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			if term, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, %v, want %q", term, err, tc.want)
			}
		})
	}
}

func TestRemaining(t *testing.T) {
	cases := map[string]struct{ steady, wall, want time.Duration }{
		"just renewed":           {0, 0, 4 * time.Second},
		"a second ago":           {time.Second, time.Second, 3 * time.Second},
		"at the deadline":        {4 * time.Second, 4 * time.Second, 0},
		"the machine slept":      {time.Second, time.Hour, 4*time.Second - time.Hour},
		"the clock was set back": {time.Second, -time.Hour, 3 * time.Second},
		"set back, and no other": {-time.Second, -time.Second, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := remaining(4*time.Second, tc.steady, tc.wall); got != tc.want {
				t.Errorf("%v left, want %v", got, tc.want)
			}
		})
	}
}
