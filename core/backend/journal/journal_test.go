package journal

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// An update of memory is seen as a whole, or not at all.
func TestMemory(t *testing.T) {
	m := NewMemory()
	failed := errors.New("failed")
	read := func() (list []string) {
		t.Helper()
		if err := m.View(func(r Records) error {
			return r.Each("b", func(key string, text []byte) error {
				list = append(list, key+"="+string(text))
				return nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	steps := []struct {
		write func(Writable) error
		want  []string
	}{
		{func(w Writable) error { return errors.Join(w.Put("b", "2", []byte("x")), w.Put("b", "1", []byte("y"))) }, []string{"1=y", "2=x"}},
		{func(w Writable) error { return errors.Join(w.Put("b", "3", []byte("z")), failed) }, []string{"1=y", "2=x"}},
		{func(w Writable) error { return errors.Join(w.Clear(), failed) }, []string{"1=y", "2=x"}},
		{func(w Writable) error {
			_ = w.Put("b", "2", []byte("new"))
			if text, err := w.Get("b", "2"); string(text) != "new" {
				t.Errorf("what was written reads %q, error %v", text, err)
			}
			if text, err := w.Get("b", "1"); string(text) != "y" {
				t.Errorf("what was there reads %q, error %v", text, err)
			}
			return nil
		}, []string{"1=y", "2=new"}},
		{func(w Writable) error { return errors.Join(w.Clear(), w.Put("b", "4", []byte("last"))) }, []string{"4=last"}},
	}
	for i, step := range steps {
		held, err := m.Moment()
		if err != nil {
			t.Fatal(err)
		}
		before := read()
		if err := m.Update(step.write); err != nil && !errors.Is(err, failed) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, read()); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		var kept []string
		_ = held.Each("b", func(key string, text []byte) error { kept = append(kept, key+"="+string(text)); return nil })
		if diff := cmp.Diff(before, kept); diff != "" {
			t.Errorf("step %d: a moment changed (-want +got):\n%s", i, diff)
		}
	}
}

func spec(id int) workload.Job {
	return workload.Job{Spec: core.JobSpec{ID: core.JobID(id), Name: "job"}}
}

// Records that do not belong together are refused.
func TestRecallRefuses(t *testing.T) {
	cases := map[string]struct {
		jobs int
		do   func(l *Log) error
		want string
	}{
		"nothing wrong":   {1, func(l *Log) error { j := spec(1); return l.Submit([]*workload.Job{&j}) }, ""},
		"a job too early": {1, func(l *Log) error { j := spec(2); return l.Submit([]*workload.Job{&j}) }, "job 1 is missing"},
		"a job too late":  {2, func(l *Log) error { j := spec(1); return l.Submit([]*workload.Job{&j}) }, "job 2 is missing"},
		"another number": {1, func(l *Log) error {
			return l.store.Update(func(w Writable) error { return put(w, jobsBucket, number(1), submission{Spec: core.JobSpec{ID: 2}}) })
		}, "job 1 is missing"},
		"a round of nobody": {0, func(l *Log) error {
			l.BeginRound()
			return l.Record(&Seen{Events: []Event{{Kind: core.JobSubmitted}}}, nil)
		}, "unknown job 0"},
		"words of nobody":      {0, func(l *Log) error { l.BeginRound(); return l.Record(&Seen{Said: []Said{{Job: 3}}}, nil) }, "unknown job 3"},
		"a decision of nobody": {0, func(l *Log) error { l.BeginRound(); return l.Record(&Seen{}, []core.Change{{Job: 1}}) }, "unknown job 1"},
		"a missing round":      {0, func(l *Log) error { l.BeginRound(); l.BeginRound(); return l.Record(&Seen{}, nil) }, "round 1 is missing"},
		"no such node": {0, func(l *Log) error {
			l.BeginRound()
			return l.Record(&Seen{Events: []Event{{Kind: core.NodeChanged, Node: 1}}}, nil)
		}, "node 1"},
		"a node that joins before it is told of": {0, func(l *Log) error {
			l.BeginRound()
			return l.Record(&Seen{Events: []Event{{Kind: core.NodeAdded, Node: 1}, {Kind: core.NodeRemoved, Node: 1}}}, nil)
		}, ""},
		"a node that joins twice": {0, func(l *Log) error {
			l.BeginRound()
			return l.Record(&Seen{Events: []Event{{Kind: core.NodeAdded, Node: 2}}}, nil)
		}, "node 2"},
		"nobody cancelled": {1, func(l *Log) error { return l.Cancel(1) }, `unknown job "1" is cancelled`},
		"no decision": {0, func(l *Log) error {
			return l.store.Update(func(w Writable) error { return put(w, roundsBucket, number(1), Seen{}) })
		}, "round 1 has no decision"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMemory()
			l := Open(m, "a", "")
			if err := errors.Join(l.Reset(&Meta{Nodes: []Node{{Name: "n", Devices: 1}}}), tc.do(l)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(m, "a", "").Recall(tc.jobs)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// What was recorded is told again: rounds in order, and by the last composition alone as its own.
func TestErasAreToldApart(t *testing.T) {
	m := NewMemory()
	l := Open(m, "a", "config a")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.Reset(&Meta{}))
	record := func(n int) {
		for range n {
			l.BeginRound()
			must(l.Record(&Seen{NowSeconds: float64(l.Rounds())}, nil))
		}
	}
	record(2)
	must(l.Keep([]core.Learned{{Component: "x", Data: []byte("1")}}))
	must(l.Begin(3, &core.Composition{Identity: "b", Config: "config b"}, l.Learned()))
	record(2)
	for identity, want := range map[string]string{"a": "....", "b": "..bb"} {
		again := Open(m, identity, "")
		if _, err := again.Recall(0); err != nil {
			t.Fatal(err)
		}
		got := ""
		for again.Replaying() {
			seen, _ := again.Repeat(nil)
			if mark := "."; seen.Decided.Same {
				mark = "b"
				got += mark
			} else {
				got += mark
			}
			if again.Repeated() != true || seen.NowSeconds != float64(again.Rounds()) {
				t.Errorf("round %d is of %v s", again.Rounds(), seen.NowSeconds)
			}
		}
		if meta, err := again.Meta(); got != want || err != nil || meta.Config != "config b" || again.LastSeconds() != 4 {
			t.Errorf("as %q: rounds %q, want %q; meta %+v, error %v", identity, got, want, meta, err)
		}
		if learned := again.Learned(); len(learned) != 1 || string(learned[0].Data) != "1" {
			t.Errorf("learned %v", learned)
		}
	}
}

// A composition whose beginning could not be recorded does not decide.
func TestABeginningThatIsNotRecordedChangesNothing(t *testing.T) {
	s := &refusing{Memory: NewMemory()}
	l := Open(s, "first", "policies: old")
	if err := l.Reset(&Meta{}); err != nil {
		t.Fatal(err)
	}
	s.why = errors.New("disk full")
	if err := l.Begin(2, &core.Composition{Identity: "second", Config: "policies: new"}, nil); !errors.Is(err, s.why) {
		t.Errorf("error %v, want that of the store", err)
	}
	s.why = nil
	if err := l.Begin(3, &core.Composition{}, nil); err != nil {
		t.Fatal(err)
	}
	if last := l.eras[len(l.eras)-1]; last.Identity != "first" || l.meta.Config != "policies: old" {
		t.Errorf("the run goes on by %q with %q, want what it was begun with", last.Identity, l.meta.Config)
	}
}

// refusing is a store that can refuse to write.
type refusing struct {
	*Memory
	why error
}

func (r *refusing) Update(write func(Writable) error) error {
	if r.why != nil {
		return r.why
	}
	return r.Memory.Update(write)
}

// An event is told again as it was told.
func TestEventsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(0, 1e9)
		want := core.Event{
			ID: rapid.Uint64().Draw(t, "id"), Kind: core.EventKind(rapid.IntRange(0, int(core.JobReported)).Draw(t, "kind")),
			AtSeconds: number.Draw(t, "at"), Job: core.JobID(rapid.IntRange(0, 9).Draw(t, "job")), Node: core.NodeID(rapid.IntRange(0, 9).Draw(t, "node")),
			Progress: number.Draw(t, "progress"), Rate: number.Draw(t, "rate"), FromSeconds: number.Draw(t, "from"),
			Message: rapid.String().Draw(t, "message"), Cause: core.Cause(rapid.IntRange(0, int(core.CauseStartTimeout)).Draw(t, "cause")), StepsLeft: math.NaN(),
		}
		seats := []core.Seat{{Node: 3, Devices: 0b101}}
		switch want.Kind {
		case core.NodeAdded:
			want.Added = &core.AddedNode{Name: "joins", Accelerator: "h100", Devices: rapid.IntRange(1, 64).Draw(t, "devices"), Health: core.Provisioning}
		case core.NodeChanged:
			want.Unusable = core.DeviceSet(rapid.Uint64().Draw(t, "unusable"))
		case core.JobShrunk, core.DevicesReleased:
			want.Seats = seats
		case core.JobChanged:
			want.Spec = &core.JobSpec{ID: want.Job, Name: "edited", MinReplicas: 1, MaxReplicas: 7, Suspended: true}
		case core.JobReported:
			want.Metric, want.Step, want.Value = "loss", number.Draw(t, "step"), number.Draw(t, "value")-5e8
			if rapid.Bool().Draw(t, "diverged") {
				want.Value = math.NaN()
			}
		case core.JobSubmitted:
			want.Held = &core.Held{Seats: seats, Executed: number.Draw(t, "executed"), Restarts: 2}
		}
		m := NewMemory()
		l := Open(m, "a", "")
		if err := l.Reset(&Meta{}); err != nil {
			t.Fatal(err)
		}
		l.BeginRound()
		want.Message = strings.ToValidUTF8(want.Message, "?")
		if err := l.Record(&Seen{Events: Events([]core.Event{want})}, nil); err != nil {
			t.Fatal(err)
		}
		again := Open(m, "a", "")
		if _, err := again.Recall(10); err != nil {
			t.Fatal(err)
		}
		s := &core.JobSpec{}
		if want.Kind == core.JobSubmitted {
			want.Spec = s
		}
		seen, _ := again.Repeat(func(core.JobID) *core.JobSpec { return s })
		got := seen.Events[0]
		want.StepsLeft, got.StepsLeft = 0, 0
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// A name is taken once, whoever hands it in, and nothing is taken after the end.
func TestIntake(t *testing.T) {
	l := Open(NewMemory(), "a", "")
	if err := l.Reset(&Meta{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	in := NewIntake(l, func() float64 { return 5 }, []string{"old"}, ended)
	go in.Work()
	named := func(names ...string) (jobs []workload.Job) {
		for _, name := range names {
			jobs = append(jobs, workload.Job{Spec: core.JobSpec{Name: name, SubmitSeconds: 1}})
		}
		return jobs
	}
	if err := in.Submit(t.Context(), named("a", "b")); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{{"old"}, {"c", "a"}} {
		if _, refused := errors.AsType[core.Diagnostics](in.Submit(t.Context(), named(names...))); !refused {
			t.Errorf("%q is not refused", names)
		}
	}
	if in.End() {
		t.Error("it ends while there are jobs to take")
	}
	<-in.Arrived()
	var got []string
	for _, j := range in.Take() {
		got = append(got, j.Spec.Name)
		if j.Spec.ID != core.JobID(len(got)) || j.Spec.SubmitSeconds != 6 {
			t.Errorf("job %q is %d, submitted at %v s", j.Spec.Name, j.Spec.ID, j.Spec.SubmitSeconds)
		}
	}
	if !slices.Equal(got, []string{"a", "b"}) || !in.End() {
		t.Errorf("took %q", got)
	}
	if err := in.Submit(t.Context(), named("d")); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	close(ended)
}
