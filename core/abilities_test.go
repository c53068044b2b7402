package core_test

import (
	"io"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// set names the fields of a struct that are not nil or false.
func set(of any) (names []string) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

// Each interface that a policy may implement is found, and no other with it.
func TestAbilitiesOfPolicies(t *testing.T) {
	cases := map[string]any{
		"Steady":         struct{ core.Steady }{},
		"CurveAdmitter":  struct{ core.CurveAdmitter }{},
		"Promiser":       struct{ core.Promiser }{},
		"Reviewer":       struct{ core.Reviewer }{},
		"Historian":      struct{ core.Historian }{},
		"ReportFollower": struct{ core.ReportFollower }{},
		"Guarantor":      struct{ core.Guarantor }{},
		"Certifier":      struct{ core.Certifier }{},
		"OncePerRound":   struct{ core.OncePerRound }{},
		"Precedent":      struct{ core.Precedent }{},
		"SomeAllocator":  struct{ core.SomeAllocator }{},
		"ReservedKeeper": struct{ core.ReservedKeeper }{},
		"Recoverer":      struct{ core.Recoverer }{},
		"Snapshotter":    struct{ core.Snapshotter }{},
		"Forker":         struct{ core.Forker }{},
		"Files":          struct{ core.FileReader }{},
		"Discarder":      struct{ core.Discarder }{},
		"Closer":         struct{ io.Closer }{},
	}
	for name, policy := range cases {
		if diff := cmp.Diff([]string{name}, set(core.AbilitiesOf(policy))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if fields := reflect.TypeFor[core.Abilities]().NumField(); len(cases) != fields {
		t.Errorf("%d abilities are tried, of %d", len(cases), fields)
	}
	for name, policy := range map[string]any{"nil": nil, "a plain allocator": struct{ core.Allocator }{}} {
		if got := set(core.AbilitiesOf(policy)); got != nil {
			t.Errorf("%s can %q, want nothing", name, got)
		}
	}
}

// answering promises, or follows reports, only where it says so.
type answering struct{ yes bool }

func (a answering) Promises() bool       { return a.yes }
func (a answering) FollowsReports() bool { return a.yes }

// An ability that a policy may answer no to counts only with a yes.
func TestAbilitiesThatAreAskedFor(t *testing.T) {
	follower := struct {
		core.Elasticity
		answering
	}{}
	for _, yes := range []bool{false, true} {
		follower.yes = yes
		can := core.AbilitiesOf(follower)
		if can.Promiser == nil || can.ReportFollower == nil || can.Promises() != yes || can.FollowsReports() != yes {
			t.Errorf("answered %v: promises %v, follows reports %v", yes, can.Promises(), can.FollowsReports())
		}
	}
	none := core.AbilitiesOf(nil)
	if none.Promises() || none.FollowsReports() {
		t.Error("nothing promises or follows reports")
	}
}
