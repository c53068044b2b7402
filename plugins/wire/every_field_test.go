package wire_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// drawEvery draws a value for every field of what a pointer is to, whichever there are: one that is new, and that nobody tells, is then
// missing at the other end. Which of them were not zero is noted by name.
func drawEvery(t *rapid.T, into any, seen map[string]bool) {
	drawValue(t, reflect.ValueOf(into).Elem(), reflect.TypeOf(into).Elem().Name(), seen)
}

func drawValue(t *rapid.T, v reflect.Value, name string, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				drawValue(t, v.Field(i), name+"."+field.Name, seen)
			}
		}
		return
	case reflect.Pointer:
		if seen[name] = true; rapid.Bool().Draw(t, name) {
			if v.Type() == reflect.TypeFor[*core.PairTable]() {
				v.Set(reflect.ValueOf(drawPairs(t, name)))
				return
			}
			v.Set(reflect.New(v.Type().Elem()))
			drawValue(t, v.Elem(), name, seen)
		}
		return
	case reflect.Slice:
		n := rapid.IntRange(0, 2).Draw(t, name)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			drawValue(t, v.Index(i), name, seen)
		}
		return
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "a", "ü", "t4"}).Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int16, reflect.Int32:
		v.SetInt(int64(rapid.SampledFrom([]int{0, 1, 2, 1000, math.MaxInt16}).Draw(t, name)))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(rapid.IntRange(0, 2).Draw(t, name)))
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{0, 0.125, 1, 80, 1e9}).Draw(t, name))
	default:
		panic(fmt.Sprintf("%s is a %v, which nobody draws yet", name, v.Kind()))
	}
	seen[name] = seen[name] || !v.IsZero()
}

// drawPairs draws a table of pairs, whose fields are not to be seen.
func drawPairs(t *rapid.T, name string) *core.PairTable {
	pair := rapid.Custom(func(t *rapid.T) core.Pair {
		text, part := rapid.SampledFrom([]string{"", "a", "b", "ü"}), rapid.SampledFrom([]float64{0, 0.125, 0.5, 1})
		return core.Pair{
			Accelerator: text.Draw(t, "accelerator"), Applications: [2]string{text.Draw(t, "application"), text.Draw(t, "beside")},
			Replicas: rapid.IntRange(1, 8).Draw(t, "replicas"), Parts: [2]float64{part.Draw(t, "part"), part.Draw(t, "beside part")},
		}
	})
	return core.NewPairTable(rapid.SliceOfN(pair, 0, 4).Draw(t, name))
}

// drawView draws a view with every field of the cluster, of a node, of a pool and of a job.
func drawView(t *rapid.T, seen map[string]bool) *core.View {
	c := new(core.Cluster)
	drawEvery(t, c, seen)
	c.Accelerators = []string{"t4", "v100"}
	c.Nodes = make([]core.Node, rapid.IntRange(1, 3).Draw(t, "nodes"))
	for i := range c.Nodes {
		n := &c.Nodes[i]
		drawEvery(t, n, seen)
		n.ID, n.Accelerator, n.Devices = core.NodeID(i), core.AcceleratorID(rapid.IntRange(0, 1).Draw(t, "type")), rapid.IntRange(1, core.MaxDevicesPerNode).Draw(t, "devices")
		n.Unusable &= core.FirstDevices(n.Devices)
	}
	for i := range c.Pools {
		c.Pools[i].Accelerator = core.AcceleratorID(i)
	}
	v := new(core.View)
	v.Cluster, v.Devices = c, c.UsableDevices()
	v.Jobs = make([]*core.Job, rapid.IntRange(1, 3).Draw(t, "jobs"))
	for id := range v.Jobs {
		spec := new(core.JobSpec)
		drawEvery(t, spec, seen)
		spec.ID = core.JobID(id)
		v.Jobs[id] = core.NewJob(spec)
		var held struct { // of what it was given
			Sliced    *core.Sliced
			Resources *core.Resources
			Reported  []core.Series
		}
		drawEvery(t, &held, seen)
		for i := range held.Reported {
			held.Reported[i].Metric += fmt.Sprint(i) // each of them once
			if len(held.Reported[i].Points) == 0 {   // a metric is there once it was told
				held.Reported[i].Points = make([]core.Point, 1)
			}
		}
		if held.Sliced != nil && len(held.Sliced.Starts) == 0 {
			held.Sliced = nil // which says the same
		}
		v.Jobs[id].Sliced, v.Jobs[id].Resources = held.Sliced, held.Resources
		v.Jobs[id].Reported = held.Reported
		v.Changed = append(v.Changed, spec.ID)
	}
	return v
}

// travelled is a view after it was told whole, in bytes.
func travelled(t *rapid.T, e *wire.Encoder, heard *wire.Copy, v *core.View) *core.View {
	message, err := proto.Marshal(e.Encode(v, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	u := new(stagev1.ViewUpdate)
	if err := proto.Unmarshal(message, u); err != nil {
		t.Fatal(err)
	}
	if known, err := heard.Apply(u); !known || err != nil {
		t.Fatalf("known %v, error %v", known, err)
	}
	return &heard.View
}

// Whatever a job asks for, and a cluster has, is told: each field of them, also those that there are not yet.
func TestEveryFieldOfAViewTravels(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t, seen)
		encoder := wire.Encoder{Reports: true}
		var heard wire.Copy
		if diff := cmp.Diff(v, travelled(t, &encoder, &heard, v), equal...); diff != "" {
			t.Fatalf("view -told +heard:\n%s", diff)
		}
		edited := *v.Jobs[0].JobSpec // its owner edits a job: all is told again
		drawEvery(t, &edited, seen)
		edited.ID = 0
		v.Jobs[0].JobSpec = &edited
		encoder.Reset()
		if diff := cmp.Diff(v, travelled(t, &encoder, &heard, v), equal...); diff != "" {
			t.Fatalf("edited, view -told +heard:\n%s", diff)
		}
	})
	allSeen(t, seen)
}

// Each field of grants and placements is told, and when it changes: an answer that differs in one of them is another answer.
func TestEveryFieldOfAnAnswerTravels(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		grants, grantsHeard := wire.NewGrantSender(), wire.Receiver[core.Grant]{}
		placed, placedHeard := wire.NewPlacementSender(), wire.Receiver[core.Placement]{}
		for range 4 {
			var g []core.Grant
			var p []core.Placement
			for id := range core.JobID(rapid.IntRange(0, 3).Draw(t, "jobs")) {
				grant, placement := new(core.Grant), new(core.Placement)
				drawEvery(t, grant, seen)
				drawEvery(t, placement, seen)
				grant.Job, placement.Job = id, id
				g, p = append(g, *grant), append(p, *placement)
			}
			steps, fresh := grants.Encode(g)
			got, err := grantsHeard.Apply(steps, wire.GrantsFrom(sent(t, wire.Grants(fresh))))
			if diff := cmp.Diff(g, got, equal...); err != nil || diff != "" {
				t.Fatalf("error %v, grants -told +heard:\n%s", err, diff)
			}
			steps, seated := placed.Encode(p)
			heard, err := placedHeard.Apply(steps, wire.PlacementsFrom(sent(t, wire.Placements(seated))))
			if diff := cmp.Diff(p, heard, equal...); err != nil || diff != "" {
				t.Fatalf("error %v, placements -told +heard:\n%s", err, diff)
			}
		}
	})
	allSeen(t, seen)
}

// sent is a list of messages after it travelled.
func sent[M proto.Message](t *rapid.T, messages []M) []M {
	for i, m := range messages {
		text, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		messages[i] = m.ProtoReflect().New().Interface().(M)
		if err := proto.Unmarshal(text, messages[i]); err != nil {
			t.Fatal(err)
		}
	}
	return messages
}

// allSeen fails for fields that were zero in every draw: nothing was held of them.
func allSeen(t *testing.T, seen map[string]bool) {
	t.Helper()
	for name, told := range seen {
		if !told {
			t.Errorf("%s was never drawn", name)
		}
	}
}

// A way of sharing of a later version is unlike all that are known, and no plugin is taken for one that seats it.
func TestAWayOfSharingThatIsNotKnown(t *testing.T) {
	for _, number := range []stagev1.Sharing{-1, 99, 256, 257, math.MaxInt32} {
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 1).Obj()).Obj()
		var encoder wire.Encoder
		var heard wire.Copy
		u := encoder.Encode(v, nil, nil)
		u.Sharing = number
		if known, err := heard.Apply(u); !known || err != nil || heard.View.Cluster.Sharing.Known() {
			t.Errorf("%d: known %v, error %v, shared by %v", number, known, err, heard.View.Cluster.Sharing)
		}
		told := []stagev1.Sharing{stagev1.Sharing_SHARING_TIMESLICE, number, stagev1.Sharing_SHARING_FRACTIONAL}
		if diff := cmp.Diff([]core.Sharing{core.TimeSlice, core.Fractional}, wire.SharingsFrom(told)); diff != "" {
			t.Errorf("%d: (-want +got)\n%s", number, diff)
		}
	}
}

func TestWaysOfSharingTravel(t *testing.T) {
	var all []core.Sharing
	for s := core.Exclusive; s.Known(); s++ {
		all = append(all, s)
	}
	told := wire.Sharings(all)
	if diff := cmp.Diff(all, wire.SharingsFrom(told)); diff != "" {
		t.Errorf("(-told +heard)\n%s", diff)
	}
	for i, m := range told {
		if _, named := stagev1.Sharing_name[int32(m)]; !named || int(m) != i {
			t.Errorf("%v is told as %d, which the contract does not name", all[i], m)
		}
	}
}
