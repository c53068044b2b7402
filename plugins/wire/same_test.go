package wire_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// difference is cmp.Diff by equal. Values that are the same, as almost all are, are found out without it, ten times as fast.
func difference(a, b any) string {
	if same(reflect.ValueOf(a), reflect.ValueOf(b)) {
		return ""
	}
	return cmp.Diff(a, b, equal...)
}

// same reports whether two values are the same beyond doubt: by the exported fields of views, and by all fields of other structs.
func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return a.Pointer() == b.Pointer() || same(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			hidden := a.Type() == reflect.TypeFor[core.View]() && !a.Type().Field(i).IsExported()
			if !hidden && !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Float64:
		x, y := a.Float(), b.Float()
		return x == y || math.IsNaN(x) && math.IsNaN(y)
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64, reflect.String:
		return a.Equal(b)
	default: // cmp.Diff decides
		return false
	}
}

func TestSameSeesEveryDifference(t *testing.T) {
	world := func(change func(*core.View)) *core.View {
		v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Jobs(
			coretest.MakeJob("waiting").Waiting(), coretest.MakeJob("running").Running(0, coretest.Seat(0, 1)),
		).Obj()
		change(v)
		return v
	}
	for name, tc := range map[string]struct {
		change func(*core.View)
		same   bool // for certain
	}{
		"nothing":          {func(*core.View) {}, true},
		"an empty list":    {func(v *core.View) { v.Cluster.Pools = []core.Pool{} }, true},
		"a number":         {func(v *core.View) { v.Round++ }, false},
		"a moment":         {func(v *core.View) { v.NowSeconds = math.NaN() }, false},
		"a text of a job":  {func(v *core.View) { v.Jobs[1].Name = "other" }, false},
		"a device":         {func(v *core.View) { v.Jobs[1].Seats[0].Devices++ }, false},
		"a job less":       {func(v *core.View) { v.Jobs[0] = nil }, false},
		"a node more":      {func(v *core.View) { v.Cluster.Nodes = append(v.Cluster.Nodes, core.Node{}) }, false},
		"health":           {func(v *core.View) { v.Cluster.Nodes[1].Health = core.Down }, false},
		"a table":          {func(v *core.View) { v.Jobs[0].Truth = &core.Truth{} }, false},
		"may grow":         {func(v *core.View) { v.Cluster.MayGrow = true }, false},
		"another progress": {func(v *core.View) { v.Jobs[0].Progress = 0.5 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := world(func(*core.View) {}), world(tc.change)
			if got := same(reflect.ValueOf(a), reflect.ValueOf(b)); got != tc.same {
				t.Errorf("same: %v, want %v", got, tc.same)
			}
			if diff := difference(a, b); (diff == "") != tc.same {
				t.Errorf("difference:\n%s", diff)
			}
		})
	}
	if !same(reflect.ValueOf(math.NaN()), reflect.ValueOf(math.NaN())) {
		t.Error("NaN is not NaN")
	}
}
