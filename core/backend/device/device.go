// Package device finds the NVIDIA devices of this machine, and the instances of those that are divided by MIG: through nvidia-smi, or first through the driver's library, NVML, in
// programs for Linux that are built with cgo and -tags nvml. It decides nothing about them.
//
// It was tested with stand-ins for the library and for nvidia-smi, and on machines without devices. It never ran on a machine
// that has some.
package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Device is one accelerator.
type Device struct {
	Index     int    // as the driver numbers them, by bus; CUDA may number otherwise
	UUID      string // by which CUDA_VISIBLE_DEVICES names it
	Model     string // name that the driver gives it
	MemoryMiB int    // 0 if the driver does not report it
	MIG       bool   // it is divided into instances. CUDA gives a process one of them, never the whole: it is not scheduled

	// An instance of MIG is scheduled as a device of its own, under the Index of the device that it is a part of.
	Profile  string // what an instance has of its device, such as 3g.20gb; empty for a whole device
	Instance int    // number of an instance on its device
}

// Type is its accelerator type in configs: h100, or h100-3g.40gb for an instance of one.
func (d Device) Type() string {
	if d.Profile != "" {
		return TypeOf(d.Model) + "-" + d.Profile
	}
	return TypeOf(d.Model)
}

// Found is what a search came to.
type Found struct {
	Devices []Device // all that were found, in the order of their indices
	Source  string   // what reported them; empty without a driver
	Reason  string   // why there are none; empty when there are some
}

// Group is the devices of one type.
type Group struct {
	Type    string   // accelerator type, as Device.Type names it
	Devices []Device // those of the group, in the order of their indices
}

// Groups sorts the devices that can be scheduled by type, types in the order of their first device.
func (f Found) Groups() []Group {
	var groups []Group
	for _, d := range f.Devices {
		if d.MIG {
			continue
		}
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Type == d.Type() })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Type: d.Type()})
		}
		groups[i].Devices = append(groups[i].Devices, d)
	}
	return groups
}

// String says in one line what there is to schedule, or why there is nothing.
func (f Found) String() string {
	var parts []string
	for _, g := range f.Groups() {
		parts = append(parts, fmt.Sprintf("%d of type %q", len(g.Devices), g.Type))
	}
	if len(parts) == 0 {
		parts = append(parts, "no device to schedule")
	}
	text := strings.Join(parts, ", ")
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	for _, d := range f.Devices {
		if d.MIG && !slices.ContainsFunc(f.Devices, func(i Device) bool { return i.Profile != "" && i.Index == d.Index }) {
			text += fmt.Sprintf("; device %d is left out, it is divided by MIG and has no instance", d.Index)
		}
	}
	return text
}

// A source lists devices in any order.
type source struct {
	name string
	list func(context.Context) ([]Device, error) // an absent error when the machine lacks what it asks
}

// absent says what is missing.
type absent string

func (a absent) Error() string { return string(a) }

// Discover lists the devices of this machine, of which it leaves out those that CUDA_VISIBLE_DEVICES hides from this process.
// A machine without a driver has none. A driver that is there and does not answer properly is an error.
func Discover(ctx context.Context) (Found, error) {
	return discover(ctx, os.LookupEnv, library(""), program("nvidia-smi"))
}

func discover(ctx context.Context, lookup func(string) (string, bool), sources ...source) (Found, error) {
	var missing []string
	for _, s := range sources {
		devices, err := s.list(ctx)
		if lack := absent(""); errors.As(err, &lack) {
			missing = append(missing, lack.Error())
			continue
		}
		if err == nil {
			err = check(devices)
		}
		if err != nil {
			return Found{}, fmt.Errorf("list devices with %s: %w", s.name, err)
		}
		slices.SortFunc(devices, func(a, b Device) int {
			return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(min(len(a.Profile), 1), min(len(b.Profile), 1)), cmp.Compare(a.Instance, b.Instance))
		})
		found := Found{Devices: devices, Source: s.name}
		if len(devices) == 0 {
			found.Reason = "the NVIDIA driver shows no device"
			return found, nil
		}
		return found.visible(lookup)
	}
	return Found{Reason: "no NVIDIA driver: " + strings.Join(missing, ", ")}, nil
}

// The shapes of UUIDs: they go into the environment of jobs. Drivers before 470 name an instance after its device and its numbers.
var (
	deviceID   = pattern(`^GPU-` + hexadecimal + `$`)
	instanceID = pattern(`^MIG-(` + hexadecimal + `|GPU-` + hexadecimal + `/[0-9]{1,3}/[0-9]{1,3})$`)
)

// pattern is an expression that is compiled when it is needed first: most commands look at no device.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

const hexadecimal = `[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`

// check refuses answers that would have two jobs share a device, and instances that no device has.
func check(devices []Device) error {
	type place struct {
		index    int
		part     bool
		instance int
	}
	places, ids, divided := map[place]bool{}, map[string]bool{}, map[int]bool{}
	for _, d := range devices {
		divided[d.Index] = divided[d.Index] || d.MIG
	}
	instances := map[int][]Device{}
	for _, d := range devices {
		id, at, what, shape := strings.ToLower(d.UUID), place{d.Index, d.Profile != "", d.Instance}, fmt.Sprintf("device %d", d.Index), deviceID
		if at.part {
			what, shape = fmt.Sprintf("instance %d of device %d", d.Instance, d.Index), instanceID
			instances[d.Index] = append(instances[d.Index], d)
		}
		switch {
		case d.Index < 0 || d.Instance < 0 || places[at]:
			return fmt.Errorf("%s is negative or listed twice", what)
		case !shape().MatchString(d.UUID):
			return fmt.Errorf("%s has the UUID %q", what, d.UUID)
		case ids[id]:
			return fmt.Errorf("two devices have the UUID %q", d.UUID)
		case d.Model == "" || strings.HasPrefix(d.Model, "["): // such as [GPU is lost]
			return fmt.Errorf("%s has the model %q", what, d.Model)
		case d.MemoryMiB < 0:
			return fmt.Errorf("%s has %d MiB of memory", what, d.MemoryMiB)
		case at.part && !profileName().MatchString(d.Profile):
			return fmt.Errorf("%s has the profile %q", what, d.Profile)
		case at.part && !divided[d.Index]:
			return fmt.Errorf("%s is of no device that is divided", what)
		}
		places[at], ids[id] = true, true
	}
	for _, index := range slices.Sorted(maps.Keys(instances)) {
		if err := checkLayout(instances[index]); err != nil {
			return fmt.Errorf("device %d: %w", index, err)
		}
	}
	return nil
}
