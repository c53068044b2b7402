package operate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/backend/device"
)

func TestNodesOf(t *testing.T) {
	h100 := device.Device{Model: "NVIDIA H100 80GB HBM3"}
	t4 := device.Device{Model: "Tesla T4"}
	cases := map[string]struct {
		found   device.Found
		want    []configs.NodeGroup
		wantErr string
	}{
		"one type": {
			found: device.Found{Devices: []device.Device{h100, h100}},
			want:  []configs.NodeGroup{{Name: "here", Count: 1, Accelerator: "h100", Devices: 2}},
		},
		"two types": {
			found: device.Found{Devices: []device.Device{t4, h100, t4}},
			want: []configs.NodeGroup{
				{Name: "here-t4", Count: 1, Accelerator: "t4", Devices: 2}, {Name: "here-h100", Count: 1, Accelerator: "h100", Devices: 1},
			},
		},
		"instances of MIG": {
			found: device.Found{Devices: []device.Device{
				{Model: "NVIDIA H100 80GB HBM3", MIG: true},
				{Model: "NVIDIA H100 80GB HBM3", Profile: "3g.40gb", MemoryMiB: 40448},
				{Model: "NVIDIA H100 80GB HBM3", Profile: "1g.10gb", MemoryMiB: 10240},
				{Model: "NVIDIA H100 80GB HBM3", Profile: "1g.10gb", MemoryMiB: 9984},
			}},
			want: []configs.NodeGroup{
				{Name: "here-h100-3g.40gb", Count: 1, Accelerator: "h100-3g.40gb", Devices: 1, DeviceMemoryGB: 39.5},
				{Name: "here-h100-1g.10gb", Count: 1, Accelerator: "h100-1g.10gb", Devices: 2, DeviceMemoryGB: 9.75},
			},
		},
		"one does not tell its memory": {
			found: device.Found{Devices: []device.Device{{Model: "Tesla T4", MemoryMiB: 15360}, t4}},
			want:  []configs.NodeGroup{{Name: "here", Count: 1, Accelerator: "t4", Devices: 2}},
		},
		"none":     {found: device.Found{Reason: "no NVIDIA driver"}, wantErr: "no device to schedule: no NVIDIA driver"},
		"MIG only": {found: device.Found{Devices: []device.Device{{Model: "NVIDIA H100 80GB HBM3", MIG: true}}}, wantErr: "divided by MIG"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := nodesOf(tc.found)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			flags, err := clusterFlags(got)
			if err != nil {
				t.Fatal(err)
			}
			shared := []string{"cluster.sharing=fractional", "cluster.pools=[{name: p, accelerator: t4, devices: 1, max: 2}]", "pipeline.placement.type=fgd"}
			c, err := configs.Load(catalog(), configs.Options{Files: []string{RunConfig}, Sets: shared, Flags: append(flags, discovered)})
			if err != nil {
				t.Fatal(err)
			}
			if c.Cluster.Sharing != "fractional" || len(c.Cluster.Pools) > 0 {
				t.Errorf("the cluster of the config is %+v, want its sharing, and its nodes and pools replaced", c.Cluster)
			}
			if diff := cmp.Diff(tc.want, c.Cluster.Nodes); diff != "" {
				t.Errorf("nodes of the config: -want +got\n%s", diff)
			}
		})
	}
}

// catalog lists what a program without Kubernetes has.
func catalog() quartet.Catalog { return (&cli.App{Engine: cluster.Elsewhere()}).Catalog() }
