package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quartet-sched/quartet/internal/refdata"
)

func TestReadOpenBNodes(t *testing.T) {
	const header = "sn,cpu_milli,memory_mib,gpu,model\n"
	cases := map[string]struct {
		rows string
		want []NodeCount
		err  string // a part of it
	}{
		"counted by type and size, the type with most devices first": {
			rows: "a,64000,262144,2,P100\nb,96000,393216,8,G2\nc,64000,262144,2,P100\nd,96000,393216,1,P100\ne,96000,393216,0,\n",
			want: []NodeCount{{"G2", 8, 1}, {"P100", 2, 2}, {"P100", 1, 1}},
		},
		"a type without a name":    {rows: "a,1,1,2,\n", err: "2:9: model is \"\""},
		"too many devices":         {rows: "a,1,1,65,T4\n", err: "2:7: gpu is \"65\""},
		"a node twice":             {rows: "a,1,1,1,T4\na,1,1,1,T4\n", err: "3:1: sn is \"a\"; expected a node of its own; it is on line 2 too"},
		"all problems at once":     {rows: "a,x,1,1,T4\nb,1,y,1.5,T4\n", err: "3:5: memory_mib"},
		"nodes without any device": {rows: "a,1,1,0,\n", err: "no node has a device"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ReadOpenBNodes(t.Context(), writeFile(t, header+tc.rows, t.TempDir(), "nodes.csv"))
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// The published cluster has 1,213 nodes with 6,212 devices.
func TestReadOpenBNodesOfTheReference(t *testing.T) {
	counts, err := ReadOpenBNodes(t.Context(), refdata.Path(t, "data", "alibaba-openb-2023", "openb_node_list_gpu_node.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, got := 0, map[string]int{}
	for _, n := range counts {
		got[n.Accelerator] += n.Devices * n.Nodes
		nodes += n.Nodes
	}
	want := map[string]int{"G2": 4392, "T4": 842, "G3": 312, "P100": 265, "V100M32": 204, "V100M16": 195, "A10": 2}
	if diff := cmp.Diff(want, got); diff != "" || nodes != 1213 {
		t.Errorf("%d nodes, want 1213; devices (-want +got):\n%s", nodes, diff)
	}
}
