package device

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	firstID  = "GPU-11111111-2222-3333-4444-555555555555"
	secondID = "GPU-11111111-2222-3333-4444-666666666666"
	thirdID  = "GPU-aaaaaaaa-2222-3333-4444-777777777777"
)

func TestTypeOf(t *testing.T) {
	cases := map[string]string{
		"NVIDIA H100 80GB HBM3":                   "h100",
		"NVIDIA H100 PCIe":                        "h100",
		"NVIDIA H100 NVL":                         "h100",
		"NVIDIA H200":                             "h200",
		"NVIDIA GH200 480GB":                      "gh200",
		"NVIDIA B200":                             "b200",
		"NVIDIA A100-SXM4-80GB":                   "a100",
		"NVIDIA A100-PCIE-40GB":                   "a100",
		"A100-SXM4-40GB":                          "a100",
		"NVIDIA A10G":                             "a10g",
		"NVIDIA L40S":                             "l40s",
		"Tesla V100-SXM2-16GB":                    "v100",
		"Tesla V100S-PCIE-32GB":                   "v100s",
		"Tesla P100-PCIE-16GB":                    "p100",
		"Tesla K80":                               "k80",
		"Tesla T4":                                "t4",
		"NVIDIA GeForce RTX 3090":                 "rtx3090",
		"GeForce RTX 3090":                        "rtx3090",
		"NVIDIA GeForce RTX 3080 Ti":              "rtx3080ti",
		"NVIDIA GeForce RTX 4070 Ti SUPER":        "rtx4070tisuper",
		"GeForce GTX 1080 Ti":                     "gtx1080ti",
		"NVIDIA GeForce RTX 4090 Laptop GPU":      "geforce-rtx-4090-laptop-gpu",
		"NVIDIA RTX A6000":                        "rtx-a6000",
		"Quadro RTX 6000":                         "quadro-rtx-6000",
		"NVIDIA RTX 6000 Ada Generation":          "rtx-6000-ada-generation",
		"NVIDIA TITAN V":                          "titan-v",
		"GRID V100D-8Q":                           "grid-v100d-8q", // a part of a V100
		"NVIDIA A100-40C":                         "a100-40c",      // a part of an A100
		"NVIDIA A100-SXM4-40GB MIG 1g.5gb":        "a100-sxm4-40gb-mig-1g-5gb",
		"Tesla":                                   "tesla",
		"NVIDIA":                                  "nvidia",
		"NVIDIA Graphics Device":                  "graphics-device",
		"\u00fc":                                  "gpu",
		"":                                        "gpu",
		"  nvidia  h100\t80GB\n":                  "h100",
		"NVIDIA GeForce":                          "geforce",
		"NVIDIA RTX PRO 6000 Blackwell Server Ed": "rtx-pro-6000-blackwell-server-ed",
	}
	for model, want := range cases {
		t.Run(model, func(t *testing.T) {
			if got := TypeOf(model); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// fakeSource is a source that answers, or does not.
func fakeSource(name string, err error, devices ...Device) source {
	return source{name, func(context.Context) ([]Device, error) { return devices, err }}
}

func device(index int, id, model string) Device {
	return Device{Index: index, UUID: id, Model: model, MemoryMiB: 16384}
}

// environment is one of names and values in turn.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestDiscover(t *testing.T) {
	one, two := device(0, firstID, "Tesla T4"), device(1, secondID, "Tesla T4")
	cases := map[string]struct {
		sources []source
		want    Found
		wantErr string
	}{
		"the first source answers": {
			sources: []source{fakeSource("a", nil, two, one), fakeSource("b", errors.New("not asked"))},
			want:    Found{Source: "a", Devices: []Device{one, two}},
		},
		"the first source is absent": {
			sources: []source{fakeSource("a", absent("no a")), fakeSource("b", nil, one)},
			want:    Found{Source: "b", Devices: []Device{one}},
		},
		"all are absent": {
			sources: []source{fakeSource("a", absent("no a")), fakeSource("b", absent("no b"))},
			want:    Found{Reason: "no NVIDIA driver: no a, no b"},
		},
		"a driver without devices": {
			sources: []source{fakeSource("a", nil), fakeSource("b", nil, one)},
			want:    Found{Source: "a", Reason: "the NVIDIA driver shows no device"},
		},
		"a broken driver": {
			sources: []source{fakeSource("a", errors.New("version mismatch")), fakeSource("b", nil, one)},
			wantErr: "list devices with a: version mismatch",
		},
		"an index twice": {
			sources: []source{fakeSource("a", nil, one, device(0, secondID, "Tesla T4"))},
			wantErr: "device 0 is negative or listed twice",
		},
		"a negative index":    {sources: []source{fakeSource("a", nil, device(-1, firstID, "Tesla T4"))}, wantErr: "device -1 is negative"},
		"a UUID twice":        {sources: []source{fakeSource("a", nil, one, device(1, firstID, "T"))}, wantErr: "two devices have the UUID"},
		"a UUID in two cases": {sources: []source{fakeSource("a", nil, device(0, thirdID, "T"), device(1, "GPU-"+strings.ToUpper(thirdID[4:]), "T"))}, wantErr: "two devices have the UUID"},
		"a UUID with more":    {sources: []source{fakeSource("a", nil, device(0, firstID+",1", "T"))}, wantErr: "has the UUID"},
		"a lost device":       {sources: []source{fakeSource("a", nil, device(0, firstID, "[GPU is lost]"))}, wantErr: `has the model "[GPU is lost]"`},
		"no model":            {sources: []source{fakeSource("a", nil, device(0, firstID, ""))}, wantErr: `has the model ""`},
		"negative memory":     {sources: []source{fakeSource("a", nil, Device{UUID: firstID, Model: "T", MemoryMiB: -1})}, wantErr: "has -1 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := discover(context.Background(), environment(), tc.sources...)
			compare(t, got, err, tc.want, tc.wantErr)
		})
	}
}

func compare(t *testing.T, got any, err error, want any, wantErr string) {
	t.Helper()
	if wantErr != "" {
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Fatalf("error %v, want %q", err, wantErr)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestVisible(t *testing.T) {
	same := []Device{device(0, firstID, "Tesla T4"), device(1, secondID, "Tesla T4"), device(2, thirdID, "Tesla T4")}
	mixed := []Device{device(0, firstID, "Tesla T4"), device(1, secondID, "NVIDIA H100 PCIe")}
	cases := map[string]struct {
		devices []Device
		env     []string
		want    []int // indexes
		wantErr string
	}{
		"not set":              {devices: same, want: []int{0, 1, 2}},
		"numbers":              {devices: same, env: []string{visibleDevices, "2, 0"}, want: []int{0, 2}},
		"UUIDs":                {devices: mixed, env: []string{visibleDevices, secondID}, want: []int{1}},
		"beginning of a UUID":  {devices: same, env: []string{visibleDevices, "GPU-AA,0"}, want: []int{0, 2}},
		"of two UUIDs":         {devices: same, env: []string{visibleDevices, "GPU-1"}, wantErr: `"GPU-1" is the beginning of 2 UUIDs`},
		"of none":              {devices: same, env: []string{visibleDevices, "GPU-9"}, wantErr: `"GPU-9" is the beginning of 0 UUIDs`},
		"empty":                {devices: same, env: []string{visibleDevices, ""}},
		"ended by -1":          {devices: same, env: []string{visibleDevices, "1,-1,2"}, want: []int{1}},
		"no such number":       {devices: same, env: []string{visibleDevices, "7"}, wantErr: "there is no device 7"},
		"no number":            {devices: same, env: []string{visibleDevices, "all"}, wantErr: `"all" is the beginning of 0 UUIDs`},
		"no MIG instance":      {devices: same, env: []string{visibleDevices, "MIG-" + firstID + "/1/0"}, wantErr: "is the beginning of 0 UUIDs"},
		"numbers of two types": {devices: mixed, env: []string{visibleDevices, "0"}, wantErr: "CUDA_DEVICE_ORDER=PCI_BUS_ID"},
		"numbers by bus":       {devices: mixed, env: []string{visibleDevices, "1", "CUDA_DEVICE_ORDER", "PCI_BUS_ID"}, want: []int{1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := discover(context.Background(), environment(tc.env...), fakeSource("a", nil, tc.devices...))
			var indexes []int
			for _, d := range got.Devices {
				indexes = append(indexes, d.Index)
			}
			compare(t, indexes, err, tc.want, tc.wantErr)
			if err == nil && (len(indexes) == 0) != (got.Reason != "") {
				t.Errorf("%d devices and the reason %q", len(indexes), got.Reason)
			}
		})
	}
}

func TestFoundTellsWhatThereIs(t *testing.T) {
	divided := device(2, thirdID, "NVIDIA H100 PCIe")
	divided.MIG = true
	cases := map[string]struct {
		found Found
		want  string
	}{
		"types": {
			found: Found{Devices: []Device{device(0, firstID, "Tesla T4"), device(1, secondID, "NVIDIA A10G")}},
			want:  `1 of type "t4", 1 of type "a10g"`,
		},
		"MIG": {
			found: Found{Devices: []Device{device(0, firstID, "NVIDIA H100 PCIe"), divided}},
			want:  `1 of type "h100"; device 2 is left out, it is divided by MIG and has no instance`,
		},
		"MIG only": {found: Found{Devices: []Device{divided}}, want: "no device to schedule; device 2 is left out, it is divided by MIG and has no instance"},
		"none":     {found: Found{Reason: "no NVIDIA driver"}, want: "no device to schedule: no NVIDIA driver"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.found.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
