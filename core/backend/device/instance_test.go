package device

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/mig"
)

// UUIDs of instances: as drivers tell them, and as those before 470 did.
const (
	partID      = "MIG-11111111-aaaa-5555-8888-000000000000"
	otherPartID = "MIG-11111111-aaaa-5555-8888-000000000001"
	oldPartID   = "MIG-" + firstID + "/1/0"
	olderPartID = "MIG-" + firstID + "/10/0"
)

// part is an instance of an H100.
func part(index, instance int, profile, id string) Device {
	return Device{
		Index: index, Instance: instance, UUID: id, Model: "NVIDIA H100 80GB HBM3", Profile: profile, MemoryMiB: nominalMiB(profile),
	}
}

// The outputs are written after the format that NVIDIA's guide to MIG prints, for drivers of 2020 and of today.
func TestParseList(t *testing.T) {
	a100 := func(instance int, profile, id string, mib int) Device {
		return Device{Index: 1, Instance: instance, UUID: id, Model: "NVIDIA A100-SXM4-40GB", Profile: profile, MemoryMiB: mib}
	}
	cases := map[string]struct {
		answer  string
		want    map[string][]Device
		wantErr string
	}{
		"one whole, one divided": {
			answer: "GPU 0: NVIDIA A100-SXM4-40GB (UUID: " + firstID + ")\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: " + secondID + ")\n" +
				"  MIG 3g.20gb     Device  0: (UUID: " + partID + ")\n  MIG 1c.2g.10gb  Device  1: (UUID: " + otherPartID + ")\n",
			want: map[string][]Device{firstID: nil, secondID: {a100(0, "3g.20gb", partID, 20480), a100(1, "1c.2g.10gb", otherPartID, 10240)}},
		},
		"an old driver": {
			answer: "GPU 1: NVIDIA A100-SXM4-40GB (UUID: " + firstID + ")\r\n  MIG 1g.5gb Device 0: (UUID: " + oldPartID + ")\r\n  MIG 1g.5gb+me Device 12: (UUID: " + olderPartID + ")",
			want:   map[string][]Device{firstID: {a100(0, "1g.5gb", oldPartID, 5120), a100(12, "1g.5gb+me", olderPartID, 5120)}},
		},
		"empty":                 {want: map[string][]Device{}},
		"a model in brackets":   {answer: "GPU 3: A (UUID: x) B (UUID: " + firstID + ")\n", want: map[string][]Device{firstID: nil}},
		"an instance of none":   {answer: "  MIG 3g.20gb     Device  0: (UUID: " + partID + ")\n", wantErr: "comes before its device"},
		"a device twice":        {answer: "GPU 0: T (UUID: " + firstID + ")\nGPU 1: T (UUID: " + firstID + ")\n", wantErr: "device 1 is listed twice"},
		"no such devices":       {answer: "No devices found.\n", wantErr: `line "No devices found." is of no device`},
		"a device that is lost": {answer: "GPU 0: T (UUID: " + firstID + ")\nUnable to determine the device handle for GPU1: GPU is lost.\n", wantErr: "GPU is lost"},
		"a line without a UUID": {answer: "GPU 0: T (UUID: " + firstID + ")\n  MIG 3g.20gb     Device  0:\n", wantErr: "is of no device"},
		"a number too large":    {answer: "GPU 10000: T (UUID: " + firstID + ")\n", wantErr: "is of no device"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseList([]byte(tc.answer))
			compare(t, got, err, tc.want, tc.wantErr)
		})
	}
}

// What is parsed and found sound means the same when it is written down again.
func FuzzParseList(f *testing.F) {
	f.Add([]byte("GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + firstID + ")\n  MIG 3g.40gb     Device  0: (UUID: " + partID + ")\n  MIG 1g.10gb     Device  1: (UUID: " + otherPartID + ")\n"))
	f.Add([]byte("GPU 0: A100-SXM4-40GB (UUID: " + firstID + ")\n  MIG 1g.5gb Device 0: (UUID: " + oldPartID + ")\nGPU 1: T4 (UUID: " + secondID + ")"))
	f.Add([]byte("No devices found.\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		instances, err := parseList(answer)
		if err != nil {
			return
		}
		for id, list := range instances {
			whole := Device{UUID: id, Model: "T", MIG: true}
			if len(list) > 0 {
				whole.Index, whole.Model = list[0].Index, list[0].Model
			}
			devices, err := withInstances([]Device{whole}, instances)
			if err != nil {
				t.Fatal(err)
			}
			if check(devices) != nil {
				continue
			}
			again := fmt.Sprintf("GPU %d: %s (UUID: %s)\n", whole.Index, whole.Model, id)
			for _, d := range devices[1:] {
				if !instanceID().MatchString(d.UUID) || d.MemoryMiB <= 0 || !strings.HasSuffix(d.Type(), "-"+d.Profile) {
					t.Errorf("%+v is found sound", d)
				}
				again += fmt.Sprintf("  MIG %s Device %d: (UUID: %s)\n", d.Profile, d.Instance, d.UUID)
			}
			got, err := parseList([]byte(again))
			compare(t, got, err, map[string][]Device{id: list}, "")
		}
	})
}

func TestInstancesAreDevices(t *testing.T) {
	whole := Device{Index: 0, UUID: thirdID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559}
	divided := Device{Index: 1, UUID: firstID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, MIG: true}
	first, second := part(1, 0, "3g.40gb", partID), part(1, 1, "1g.10gb", otherPartID)
	found, err := discover(context.Background(), environment(), fakeSource("a", nil, second, divided, first, whole))
	compare(t, found, err, Found{Source: "a", Devices: []Device{whole, divided, first, second}}, "")
	want := []Group{
		{Type: "h100", Devices: []Device{whole}}, {Type: "h100-3g.40gb", Devices: []Device{first}}, {Type: "h100-1g.10gb", Devices: []Device{second}},
	}
	compare(t, found.Groups(), nil, want, "")

	visible := map[string]struct {
		list    string
		want    []Device
		wantErr string
	}{
		"an instance":              {list: partID, want: []Device{first}},
		"beginnings":               {list: "GPU-a,MIG-11111111-AAAA-5555-8888-000000000001", want: []Device{whole, second}},
		"of two":                   {list: "MIG-1", wantErr: `"MIG-1" is the beginning of 2 UUIDs`},
		"a device that is divided": {list: firstID, want: []Device{divided}},
		"numbers":                  {list: "0", wantErr: "which device 0 is depends on the instances of MIG; use UUIDs"},
	}
	for name, tc := range visible {
		t.Run(name, func(t *testing.T) {
			got, err := discover(context.Background(), environment(visibleDevices, tc.list), fakeSource("a", nil, found.Devices...))
			compare(t, got.Devices, err, tc.want, tc.wantErr)
		})
	}
	old, older := part(1, 0, "1g.10gb", oldPartID), part(1, 1, "1g.10gb", oldPartID+"1")
	got, err := discover(context.Background(), environment(visibleDevices, oldPartID), fakeSource("a", nil, divided, old, older))
	compare(t, got.Devices, err, []Device{old}, "")
}

func TestInstancesAreChecked(t *testing.T) {
	divided := Device{Index: 1, UUID: firstID, Model: "NVIDIA H100 80GB HBM3", MIG: true}
	whole := Device{Index: 0, UUID: secondID, Model: "NVIDIA H100 80GB HBM3"}
	cases := map[string]struct {
		instances []Device
		want      string // part of the error; empty for none
	}{
		"sound":                 {[]Device{part(1, 0, "3g.40gb", partID), part(1, 2, "3g.40gb", otherPartID)}, ""},
		"as old drivers":        {[]Device{part(1, 0, "1g.10gb", oldPartID), part(1, 1, "1g.10gb", olderPartID)}, ""},
		"a number twice":        {[]Device{part(1, 0, "1g.10gb", partID), part(1, 0, "1g.10gb", otherPartID)}, "instance 0 of device 1 is negative or listed twice"},
		"a negative number":     {[]Device{part(1, -1, "1g.10gb", partID)}, "instance -1 of device 1 is negative"},
		"a UUID twice":          {[]Device{part(1, 0, "1g.10gb", partID), part(1, 1, "1g.10gb", "MIG-"+strings.ToUpper(partID[4:]))}, "two devices have the UUID"},
		"a UUID of a device":    {[]Device{part(1, 0, "1g.10gb", thirdID)}, "instance 0 of device 1 has the UUID"},
		"more than a UUID":      {[]Device{part(1, 0, "1g.10gb", partID+",0")}, "has the UUID"},
		"a device without MIG":  {[]Device{part(0, 0, "1g.10gb", partID)}, "instance 0 of device 0 is of no device that is divided"},
		"a profile of none":     {[]Device{part(1, 0, "large", partID)}, `has the profile "large"`},
		"too many instances":    {[]Device{part(1, 0, "7g.80gb", partID), part(1, 1, "1g.10gb", otherPartID)}, "device 1: no device has instances 7g.80gb, 1g.10gb at once"},
		"more than its compute": {[]Device{part(1, 0, "4g.40gb", partID), part(1, 1, "4g.40gb", otherPartID)}, "no device has instances 4g.40gb, 4g.40gb at once"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := check(append([]Device{whole, divided}, tc.instances...))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// instancesOfNames are instances of profiles.
func instancesOfNames(profiles ...string) (list []Device) {
	for _, profile := range profiles {
		list = append(list, Device{Profile: profile})
	}
	return list
}

func TestLayouts(t *testing.T) {
	cases := map[string]struct {
		profiles []string
		want     bool
	}{
		"none":                      {nil, true},
		"seven of the least":        {slices.Repeat([]string{"1g.5gb"}, 7), true},
		"eight of them":             {slices.Repeat([]string{"1g.5gb"}, 8), false},
		"three 2g and a 1g":         {[]string{"2g.10gb", "1g.5gb", "2g.10gb", "2g.10gb"}, true},
		"three 2g and two 1g":       {[]string{"2g.10gb", "1g.5gb", "2g.10gb", "2g.10gb", "1g.5gb"}, false},
		"3g with 2g and 1g":         {[]string{"1g.5gb", "2g.10gb", "3g.20gb"}, true},
		"two 3g leave no place":     {[]string{"3g.20gb", "3g.20gb", "1g.5gb"}, false},
		"4g, 2g and 1g":             {[]string{"4g.20gb", "2g.10gb", "1g.5gb+me"}, true},
		"parts of a 3g, and a 4g":   {[]string{"1c.3g.20gb", "2c.3g.20gb", "4g.20gb"}, true},
		"parts of two 3g, and more": {[]string{"2c.3g.20gb", "2c.3g.20gb", "1g.5gb"}, false},
		"an A30":                    {[]string{"1g.6gb", "1g.6gb", "2g.12gb"}, true},
		"of a model to come":        {[]string{"5g.100gb", "5g.100gb"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := checkLayout(instancesOfNames(tc.profiles...)); (err == nil) != tc.want {
				t.Errorf("error %v, want none: %v", err, tc.want)
			}
		})
	}
}

// What can be placed one after the other is a layout, in whatever order it is listed.
func TestPlacedInstancesAreALayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l mig.Layout
		var profiles []string
		for range rapid.IntRange(0, 12).Draw(t, "tries") {
			p := rapid.SampledFrom(mig.Profiles()).Draw(t, "profile")
			start := rapid.SampledFrom(mig.Of(p).Starts).Draw(t, "start")
			if l.Fits(p, start) {
				l |= mig.At(p, start)
				profiles = append(profiles, mig.Of(p).Name+".1gb")
			}
		}
		if err := checkLayout(instancesOfNames(rapid.Permutation(profiles).Draw(t, "listed")...)); err != nil {
			t.Error(err)
		}
	})
}
