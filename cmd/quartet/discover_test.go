package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			c, err := configs.Load(catalog(), configs.Options{Files: []string{runConfig}, Flags: append(flags, discovered)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.Cluster.Nodes); diff != "" {
				t.Errorf("nodes of the config: -want +got\n%s", diff)
			}
		})
	}
}
