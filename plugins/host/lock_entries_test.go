package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A lock holds each plugin once.
func TestALockTakesAndForgets(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*Lock)
		want []Entry
	}{
		"take another":       {func(l *Lock) { l.put(Entry{Name: "c"}) }, []Entry{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
		"take it again":      {func(l *Lock) { l.put(Entry{Name: "a", Version: "2"}) }, []Entry{{Name: "b"}, {Name: "a", Version: "2"}}},
		"forget one":         {func(l *Lock) { l.remove("a") }, []Entry{{Name: "b"}}},
		"forget one unknown": {func(l *Lock) { l.remove("c") }, []Entry{{Name: "a"}, {Name: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Lock{Plugins: []Entry{{Name: "a"}, {Name: "b"}}}
			tc.do(&l)
			if diff := cmp.Diff(tc.want, l.Plugins); diff != "" {
				t.Errorf("plugins -want +got:\n%s", diff)
			}
		})
	}
}

func TestALockFinds(t *testing.T) {
	l := Lock{Plugins: []Entry{{Name: "a"}, {Name: "b"}}}
	for name, want := range map[string]*Entry{"a": {Name: "a"}, "b": {Name: "b"}, "c": nil} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, l.find(name)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
