package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// object is a node as the API server tells of it, ready and of four devices.
func object(name string, edit ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	offers(4)(n)
	turns(corev1.ConditionTrue, "KubeletReady")(n)
	for _, e := range edit {
		e(n)
	}
	return n
}

func offers(devices int64) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(devices, resource.DecimalSI)}
	}
}

func has(devices int64) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Capacity = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(devices, resource.DecimalSI)}
	}
}

func turns(status corev1.ConditionStatus, reason string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: reason}}
	}
}

var silent = turns(corev1.ConditionUnknown, "NodeStatusUnknown")

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func anew(n *corev1.Node) { n.UID += "-again" }

// describe writes events as a story.
func (n *nodes) describe(events []core.Event) []string {
	var list []string
	for i := range events {
		e := &events[i]
		text := e.Kind.String() + " " + n.told[e.Node].name
		switch e.Kind {
		case core.NodeAdded:
			text += fmt.Sprintf(" %s %d %v %v", e.Added.Accelerator, e.Added.Devices, e.Added.Health, e.Added.Unusable.List())
		case core.NodeChanged:
			text += fmt.Sprintf(" %v %v", e.Health, e.Unusable.List())
		}
		list = append(list, strings.ReplaceAll(text, "[]", "all"))
	}
	return list
}

// moment is how a cluster is at a moment, and what is told of it.
type moment struct {
	at      float64
	nodes   []*corev1.Node
	foreign map[string]int
	held    core.DeviceSet // of each node
	ran     string         // a node that jobs run on by what is written
	want    []string
}

func testConfig() *Config {
	return &Config{Resource: "nvidia.com/gpu", Accelerator: "nvidia.com/gpu.product", SilentAfter: 40 * time.Second, Tolerate: []string{"ours"}}
}

// Only of a silent node nobody knows what runs there. One that lacks devices is down as well, and its pods are waited for.
func TestSilentIsDown(t *testing.T) {
	n := newNodes(testConfig(), func(core.NodeID) core.DeviceSet { return 0 })
	for i, m := range []struct {
		at   float64
		node *corev1.Node
		want bool // nobody waits for its pods
	}{
		{0, object("a"), false},
		{1, object("a", offers(0), has(4)), false},
		{2, object("a", offers(0), has(4), silent), false},
		{45, object("a", offers(0), has(4), silent), true},
		{46, object("a", has(4)), false},
		{50, object("a", has(4), silent), false},
		{95, object("a", has(4), silent), true},
	} {
		n.compare(m.at, []*corev1.Node{m.node}, func(string) int { return 0 })
		if got := n.down()["a"]; got != m.want {
			t.Errorf("moment %d: %v, want %v", i, got, m.want)
		}
		if m.at == 2 { // it is looked at again, whatever else happens
			if at := n.wake(2); at != 42 {
				t.Errorf("it is looked at again at %v s, want 42", at)
			}
		}
	}
}

func TestCompareNodes(t *testing.T) {
	added := "node_added a gpu 4 ready all"
	for name, story := range map[string][]moment{
		"in the order of their names, and once": {
			{nodes: []*corev1.Node{object("b"), object("a")}, want: []string{added, "node_added b gpu 4 ready all"}},
			{nodes: []*corev1.Node{object("a"), object("b")}},
		},
		"not before they have devices": {
			{nodes: []*corev1.Node{object("a", offers(0))}},
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
		},
		"the type of their devices": {
			{nodes: []*corev1.Node{
				object("a", func(n *corev1.Node) {
					n.Labels = map[string]string{"nvidia.com/gpu.product": "H200", acceleratorLabel: "other"}
				}),
				object("b", func(n *corev1.Node) { n.Labels = map[string]string{acceleratorLabel: "ours"} }),
			}, want: []string{"node_added a H200 4 ready all", "node_added b ours 4 ready all"}},
		},
		"more devices than a node may have": {
			{nodes: []*corev1.Node{object("a", offers(100))}, want: []string{"node_added a gpu 64 ready all"}},
			{nodes: []*corev1.Node{object("a", offers(100))}},
		},
		"gone": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{want: []string{"node_removed a"}},
			{},
		},
		"a name that is used again": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{nodes: []*corev1.Node{object("a", anew)}, want: []string{"node_removed a", added}},
		},
		"devices that vanish, and come back": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{nodes: []*corev1.Node{object("a", offers(3))}, want: []string{"node_changed a ready [3]"}},
			{nodes: []*corev1.Node{object("a", offers(0))}, want: []string{"node_changed a down [0 1 2 3]"}},
			{nodes: []*corev1.Node{object("a")}, want: []string{"node_changed a ready all"}},
		},
		"devices that are repaired": {
			{nodes: []*corev1.Node{object("a", offers(0), has(4))}},
			{nodes: []*corev1.Node{object("a", offers(2), has(4))}, want: []string{"node_added a gpu 4 ready [2 3]"}},
			{nodes: []*corev1.Node{object("a", has(4))}, want: []string{"node_changed a ready all"}},
		},
		"devices that nothing offers for a while": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{at: 1, held: 0b0011, nodes: []*corev1.Node{object("a", offers(0), has(4))}, want: []string{"node_changed a ready [2 3]"}},
			{at: 40, held: 0b0001, nodes: []*corev1.Node{object("a", offers(0), has(4))}, want: []string{"node_changed a ready [1 2 3]"}},
			{at: 40.5, held: 0b0001, nodes: []*corev1.Node{object("a")}, want: []string{"node_changed a ready all"}},
			{at: 50, held: 0b0001, nodes: []*corev1.Node{object("a", offers(0), has(4))}, want: []string{"node_changed a ready [1 2 3]"}}, // it begins anew
			{at: 89, held: 0b0001, nodes: []*corev1.Node{object("a", offers(0), has(4))}},
			{at: 90, held: 0b0001, nodes: []*corev1.Node{object("a", offers(0), has(4))}, want: []string{"node_changed a down [0 1 2 3]"}},
			{at: 91, held: 0b0001, nodes: []*corev1.Node{object("a", offers(0), has(4))}},
			{at: 92, held: 0b0001, nodes: []*corev1.Node{object("a", has(4))}, want: []string{"node_changed a ready all"}},
		},
		"devices that nothing offers, and no job holds": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{at: 1, nodes: []*corev1.Node{object("a", offers(0), has(4))}, want: []string{"node_changed a down [0 1 2 3]"}},
			{at: 2, nodes: []*corev1.Node{object("a", has(4))}, want: []string{"node_changed a ready all"}},
		},
		"devices that nothing offers of a node that falls silent": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{at: 1, held: 0b1111, nodes: []*corev1.Node{object("a", offers(0), has(4), silent)}},
			{at: 41, held: 0b1111, nodes: []*corev1.Node{object("a", offers(0), has(4), silent)}, want: []string{"node_changed a down [0 1 2 3]"}},
		},
		"devices that nothing offers at present, of a node that jobs run on by what is written": {
			{ran: "a", nodes: []*corev1.Node{object("a", offers(0), has(4)), object("b", offers(0), has(4))}, want: []string{added}},
			{at: 1, held: 0b0001, nodes: []*corev1.Node{object("a", offers(0), has(4)), object("b", offers(0), has(4))}, want: []string{"node_changed a ready [1 2 3]"}},
			{at: 40, held: 0b0001, nodes: []*corev1.Node{object("a", offers(0), has(4))}, want: []string{"node_changed a down [0 1 2 3]"}},
			{at: 41, nodes: []*corev1.Node{object("a")}, want: []string{"node_changed a ready all"}},
		},
		"devices that are gone from the capacity too": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{at: 1, held: 0b1111, nodes: []*corev1.Node{object("a", offers(0), has(0))}, want: []string{"node_changed a down [0 1 2 3]"}},
		},
		"more devices than there were make another node": {
			{nodes: []*corev1.Node{object("a", offers(2))}, want: []string{"node_added a gpu 2 ready all"}},
			{nodes: []*corev1.Node{object("a")}, want: []string{"node_removed a", added}},
		},
		"cordoned": {
			{nodes: []*corev1.Node{object("a", cordoned)}, want: []string{"node_added a gpu 4 ready [0 1 2 3]"}},
			{nodes: []*corev1.Node{object("a")}, want: []string{"node_changed a ready all"}},
		},
		"taints": {
			{nodes: []*corev1.Node{
				object("a", taint("ours", corev1.TaintEffectNoSchedule), taint(gang.NodesTaint, corev1.TaintEffectNoExecute)), object("b", taint("x", corev1.TaintEffectPreferNoSchedule)),
				object("c", taint("x", corev1.TaintEffectNoExecute)), object("d", taint(corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute)),
			}, want: []string{added, "node_added b gpu 4 ready all", "node_added c gpu 4 draining all", "node_added d gpu 4 down all"}},
		},
		"one that never was ready is none before it is": {
			{nodes: []*corev1.Node{object("a", turns(corev1.ConditionFalse, "KubeletNotReady"))}, want: []string{"node_added a gpu 4 provisioning all"}},
			{at: 1, nodes: []*corev1.Node{object("a", turns(corev1.ConditionFalse, "KubeletNotReady"))}},
			{at: 100, nodes: []*corev1.Node{object("a", turns(corev1.ConditionFalse, "KubeletNotReady"))}},
			{at: 101, nodes: []*corev1.Node{object("a")}, want: []string{"node_changed a ready all"}},
		},
		"one that is found silent is believed later": {
			{nodes: []*corev1.Node{object("a", silent), object("b")}, want: []string{added, "node_added b gpu 4 ready all"}},
			{at: 39, nodes: []*corev1.Node{object("a", silent), object("b")}},
			{at: 40, nodes: []*corev1.Node{object("a", silent), object("b")}, want: []string{"node_changed a down all"}},
		},
		"silence": {
			{nodes: []*corev1.Node{object("a")}, want: []string{added}},
			{at: 10, nodes: []*corev1.Node{object("a", silent)}},
			{at: 49, nodes: []*corev1.Node{object("a", silent)}},
			{at: 50, nodes: []*corev1.Node{object("a", silent)}, want: []string{"node_changed a down all"}},
			{at: 60, nodes: []*corev1.Node{object("a")}, want: []string{"node_changed a ready all"}},
			{at: 70, nodes: []*corev1.Node{object("a", silent)}},
			{at: 80, nodes: []*corev1.Node{object("a")}},
			{at: 111, nodes: []*corev1.Node{object("a", silent)}}, // it begins anew
		},
		"the silence of many is that of the control plane, unless it lasts": {
			{nodes: []*corev1.Node{object("a"), object("b")}, want: []string{added, "node_added b gpu 4 ready all"}},
			{at: 10, nodes: []*corev1.Node{object("a", silent), object("b", silent)}},
			{at: 169, nodes: []*corev1.Node{object("a", silent), object("b", silent)}},
			{at: 170, nodes: []*corev1.Node{object("a", silent), object("b", silent)}, want: []string{"node_changed a down all", "node_changed b down all"}},
			{at: 171, nodes: []*corev1.Node{object("a", silent), object("b")}, want: []string{"node_changed b ready all"}},
		},
		"those that are down stay so when others follow": {
			{nodes: []*corev1.Node{object("a"), object("b"), object("c")}, want: []string{added, "node_added b gpu 4 ready all", "node_added c gpu 4 ready all"}},
			{at: 10, nodes: []*corev1.Node{object("a", silent), object("b"), object("c")}},
			{at: 50, nodes: []*corev1.Node{object("a", silent), object("b"), object("c")}, want: []string{"node_changed a down all"}},
			{at: 60, nodes: []*corev1.Node{object("a", silent), object("b", silent), object("c")}},
			{at: 100, nodes: []*corev1.Node{object("a", silent), object("b", silent), object("c")}, want: []string{"node_changed b down all"}},
		},
		"devices of others are the last that no job holds, and stay so": {
			{nodes: []*corev1.Node{object("a")}, foreign: map[string]int{"a": 1}, held: 0b1000, want: []string{"node_added a gpu 4 ready [2]"}},
			{nodes: []*corev1.Node{object("a")}, foreign: map[string]int{"a": 2}, want: []string{"node_changed a ready [2 3]"}},
			{nodes: []*corev1.Node{object("a")}, foreign: map[string]int{"a": 1}, held: 0b0001, want: []string{"node_changed a ready [2]"}},
			{nodes: []*corev1.Node{object("a")}, foreign: map[string]int{"a": 9}, held: 0b0001, want: []string{"node_changed a ready [1 2 3]"}},
			{nodes: []*corev1.Node{object("a")}, want: []string{"node_changed a ready all"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var now moment
			n := newNodes(testConfig(), func(core.NodeID) core.DeviceSet { return now.held })
			for i := range story {
				now = story[i]
				n.ran = map[string]bool{now.ran: true}
				got := n.describe(n.compare(now.at, now.nodes, func(name string) int { return now.foreign[name] }))
				if diff := cmp.Diff(now.want, got); diff != "" {
					t.Errorf("moment %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// Whatever happens to nodes, what was told of them is how they are, once nothing is waited for any more: a second look at the same
// tells nothing, and ids are never used again.
func TestCompareIsWhatIsThere(t *testing.T) {
	edits := map[string]func(*corev1.Node){
		"silent": silent, "cordoned": cordoned, "two": offers(2), "none": offers(0), "many": offers(100), "again": anew, "as before": func(*corev1.Node) {},
		"tainted": taint("x", corev1.TaintEffectNoSchedule),
	}
	kinds := slices.Sorted(maps.Keys(edits))
	rapid.Check(t, func(t *rapid.T) {
		var held core.DeviceSet
		n := newNodes(testConfig(), func(core.NodeID) core.DeviceSet { return held })
		devices, there := map[core.NodeID]int{}, map[string]core.NodeID{}
		now := 0.0
		for range rapid.IntRange(1, 12).Draw(t, "moments") {
			now += rapid.Float64Range(0, 100).Draw(t, "after")
			held = core.DeviceSet(rapid.Uint64Range(0, 15).Draw(t, "held"))
			foreign := rapid.IntRange(0, 5).Draw(t, "foreign")
			var list []*corev1.Node
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, name) {
					list = append(list, object(name, edits[rapid.SampledFrom(kinds).Draw(t, "edit")]))
				}
			}
			count := func(string) int { return foreign }
			for _, e := range n.compare(now, list, count) {
				switch e.Kind {
				case core.NodeAdded:
					if int(e.Node) != len(devices) {
						t.Fatalf("node %d is added as the %dth", e.Node, len(devices))
					}
					devices[e.Node], there[e.Added.Name] = e.Added.Devices, e.Node
				case core.NodeRemoved:
					delete(there, n.told[e.Node].name)
				case core.NodeChanged:
					if there[n.told[e.Node].name] != e.Node {
						t.Fatalf("node %d is not there, and changed", e.Node)
					}
					if e.Unusable&^core.FirstDevices(devices[e.Node]) != 0 {
						t.Fatalf("node %d of %d devices cannot use %v", e.Node, devices[e.Node], e.Unusable.List())
					}
				}
			}
			for _, o := range list {
				if id, told := there[o.Name]; told && n.told[id].uid != o.UID {
					t.Fatalf("node %s is told as another one", o.Name)
				} else if _, offered := devicesOf(o, "nvidia.com/gpu"); !told && offered > 0 {
					t.Fatalf("node %s is not told", o.Name)
				}
			}
			if more := n.compare(now, list, count); len(more) > 0 {
				t.Fatalf("the same look tells %q", n.describe(more))
			}
		}
	})
}
