package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

type item struct {
	Job   core.JobID
	Value int
}

func newItems() *Sender[item] {
	return &Sender[item]{
		Job:   func(i *item) core.JobID { return i.Job },
		Equal: func(a, b *item) bool { return *a == *b },
		Clone: func(i item) item { return i },
	}
}

func TestEditsRebuildEveryList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r := newItems(), &Receiver[item]{}
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			jobs := rapid.Permutation([]core.JobID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "order")
			var list []item
			for _, j := range jobs[:rapid.IntRange(0, 10).Draw(t, "length")] {
				list = append(list, item{j, rapid.IntRange(0, 1).Draw(t, "value")})
			}
			if rapid.IntRange(0, 5).Draw(t, "reset") == 0 {
				s.Reset()
				r.Reset()
			}
			steps, inserted := s.Encode(list)
			got, err := r.Apply(steps, inserted)
			if err != nil {
				t.Fatal(err)
			}
			if len(list)+len(got) > 0 {
				if diff := cmp.Diff(list, got); diff != "" {
					t.Fatalf("-told +heard:\n%s", diff)
				}
			}
		}
	})
}

func TestEditCarriesOnlyWhatChanged(t *testing.T) {
	list := make([]item, 1000)
	for i := range list {
		list[i] = item{Job: core.JobID(i)}
	}
	for name, tc := range map[string]struct {
		change       func([]item) []item
		wantInserted int
		wantSteps    int // at most
	}{
		"nothing":            {func(l []item) []item { return l }, 0, 3},
		"one value":          {func(l []item) []item { l[500].Value = 1; return l }, 1, 6},
		"one gone":           {func(l []item) []item { return append(l[:500], l[501:]...) }, 0, 6},
		"first becomes last": {func(l []item) []item { return append(l[1:], l[0]) }, 1, 6},
		"last becomes first": {func(l []item) []item { return append([]item{l[999]}, l[:999]...) }, 1, 6},
		"everything":         {func(l []item) []item { return nil }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newItems()
			s.Encode(list)
			steps, inserted := s.Encode(tc.change(append([]item(nil), list...)))
			if len(inserted) != tc.wantInserted || len(steps) > tc.wantSteps {
				t.Errorf("%d items in %d steps, want %d in at most %d", len(inserted), len(steps), tc.wantInserted, tc.wantSteps)
			}
		})
	}
}

func TestEditsThatDoNotFitAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		steps    []uint32
		inserted []item
	}{
		"half a step":           {[]uint32{0, 1}, nil},
		"more than there is":    {[]uint32{0, 3, 0}, nil},
		"drops more":            {[]uint32{3, 0, 0}, nil},
		"inserts what is not":   {[]uint32{0, 0, 1}, nil},
		"leaves items over":     {[]uint32{0, 1, 0}, []item{{Job: 5}}},
		"numbers that overflow": {[]uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var r Receiver[item]
			if _, err := r.Apply([]uint32{0, 0, 2}, []item{{Job: 1}, {Job: 2}}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Apply(tc.steps, tc.inserted); err == nil {
				t.Error("was applied")
			}
		})
	}
}
