package operate

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/workload"
)

// What is told of a job with its number of devices, where one node of two is there, and what else the scheduler lists.
func TestMisfit(t *testing.T) {
	there := &controlv1.Node{Name: "fixed", Accelerator: "t4", Devices: 2, Health: "ready"}
	comes := func(at float64) *controlv1.Node {
		return &controlv1.Node{Name: "p", Accelerator: "t4", Devices: 2, Health: "provisioning", Pool: "p", ExpectedSeconds: at}
	}
	pool := func(takes float64) []*controlv1.Pool {
		return []*controlv1.Pool{{Name: "p", Accelerator: "t4", Devices: 2, MaxNodes: 3, ProvisioningSeconds: takes}}
	}
	const waits = `job "j" needs 6 devices, and the nodes that are there have 2 that it can run on; it waits for nodes of a pool`
	cases := map[string]struct {
		listed      *controlv1.NodesResponse
		needs       int
		accelerator string
		want        string
	}{
		"it fits":       {listed: &controlv1.NodesResponse{}, needs: 2},
		"no pools":      {listed: &controlv1.NodesResponse{}, needs: 6, want: `job "j" needs 6 devices, the cluster has 2 that it can run on; the next round will reject it, unless nodes will join`},
		"it asks":       {listed: &controlv1.NodesResponse{Pools: pool(0), MayGrow: true}, needs: 6, want: waits},
		"it asks, time": {listed: &controlv1.NodesResponse{Pools: pool(90), MayGrow: true}, needs: 6, want: waits + `, and one of pool "p" takes 1m 30s as a rule once it is asked for`},
		"nodes come": {
			listed: &controlv1.NodesResponse{Nodes: []*controlv1.Node{comes(300), comes(120)}, Pools: pool(90), MayGrow: true}, needs: 6,
			want: waits + ", which should be ready at 5m 00s",
		},
		"the last ones come": {
			listed: &controlv1.NodesResponse{Nodes: []*controlv1.Node{comes(300), comes(120), comes(200)}, Pools: pool(90)}, needs: 6,
			want: waits + ", which should be ready at 3m 20s",
		},
		"nobody knows when": {listed: &controlv1.NodesResponse{Nodes: []*controlv1.Node{comes(0), comes(120)}, Pools: pool(90), MayGrow: true}, needs: 6, want: waits},
		"too few come": {
			listed: &controlv1.NodesResponse{Nodes: []*controlv1.Node{comes(120)}, Pools: pool(90), MayGrow: true}, needs: 6,
			want: waits + `, and one of pool "p" takes 1m 30s as a rule once it is asked for`,
		},
		"never enough": {
			listed: &controlv1.NodesResponse{Nodes: []*controlv1.Node{comes(120)}, Pools: pool(90), MayGrow: true}, needs: 9,
			want: `job "j" needs 9 devices, the cluster has 8 that it can run on; the next round will reject it, unless nodes will join`,
		},
		"another type": {
			listed: &controlv1.NodesResponse{Pools: pool(90), MayGrow: true}, needs: 6, accelerator: "h100",
			want: `job "j" runs on "h100" only, which no node has; the next round will reject it, unless nodes will join`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.listed.Nodes = append([]*controlv1.Node{there}, tc.listed.GetNodes()...)
			job := &workload.Job{Spec: core.JobSpec{Name: "j", MinReplicas: tc.needs}}
			if tc.accelerator != "" {
				job.Spec.Accelerators = strings.Fields(tc.accelerator)
			}
			if got := misfit(job, listedCluster(tc.listed)); got != tc.want {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
