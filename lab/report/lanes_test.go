package report

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLanes(t *testing.T) {
	for name, tc := range map[string]struct {
		visits []visit
		want   []lane
		shared bool
	}{
		"none":                      {nil, []lane{}, false},
		"alone":                     {[]visit{{0, 1, 0, 10}, {0, 1, 10, 20}, {0, 2, 5, 15}, {1, 1, 5, 15}}, []lane{{0, 1}, {0, 1}, {0, 1}, {0, 1}}, false},
		"two at once":               {[]visit{{0, 1, 0, 10}, {0, 1, 5, 15}}, []lane{{0, 2}, {1, 2}}, true},
		"a lane again":              {[]visit{{0, 1, 0, 10}, {0, 1, 5, 30}, {0, 1, 10, 20}}, []lane{{0, 2}, {1, 2}, {0, 2}}, true},
		"after them alone again":    {[]visit{{0, 1, 0, 10}, {0, 1, 5, 15}, {0, 1, 15, 20}}, []lane{{0, 2}, {1, 2}, {0, 1}}, true},
		"of two devices on both":    {[]visit{{0, 1, 0, 10}, {0, 3, 5, 15}, {0, 2, 6, 20}}, []lane{{0, 2}, {1, 2}, {0, 2}}, true},
		"tied by one that joins":    {[]visit{{0, 1, 0, 20}, {0, 2, 0, 20}, {0, 2, 1, 20}, {0, 3, 5, 15}}, []lane{{0, 3}, {0, 3}, {1, 3}, {2, 3}}, true},
		"on another node":           {[]visit{{0, 1, 0, 10}, {1, 1, 0, 10}, {0, 1, 5, 15}}, []lane{{0, 2}, {0, 1}, {1, 2}}, true},
		"no time at all on another": {[]visit{{0, 1, 0, 10}, {0, 1, 5, 5}}, []lane{{0, 2}, {1, 2}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, shared := lanesOf(tc.visits)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(lane{})); diff != "" || shared != tc.shared {
				t.Errorf("shared %v, lanes (-want +got):\n%s", shared, diff)
			}
		})
	}
}

// Whoever is on a device at a time with another is drawn beside it, and nobody divides rows for nothing.
func TestLanesDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		visits := make([]visit, rapid.IntRange(0, 12).Draw(t, "visits"))
		for i := range visits {
			v := &visits[i]
			v.node, v.mask = rapid.IntRange(0, 1).Draw(t, "node"), uint64(rapid.IntRange(1, 7).Draw(t, "devices"))
			v.start = float64(rapid.IntRange(0, 20).Draw(t, "start"))
			v.end = v.start + float64(rapid.IntRange(1, 9).Draw(t, "seconds"))
		}
		slices.SortStableFunc(visits, func(a, b visit) int { return int(a.start - b.start) })
		lanes, shared := lanesOf(visits)
		any := false
		for i := range visits {
			a, divided := &visits[i], false
			for k := range visits {
				b := &visits[k]
				if i == k || a.node != b.node || a.mask&b.mask == 0 || a.end <= b.start || b.end <= a.start {
					continue
				}
				divided, any = true, true
				if lanes[i].of != lanes[k].of || lanes[i].at == lanes[k].at {
					t.Fatalf("visits %d and %d have lanes %v and %v", i, k, lanes[i], lanes[k])
				}
			}
			if lanes[i].at >= lanes[i].of || !divided && lanes[i].of != 1 {
				t.Fatalf("visit %d has lane %v, beside another: %v", i, lanes[i], divided)
			}
		}
		if any != shared {
			t.Fatalf("shared %v, want %v", shared, any)
		}
	})
}
