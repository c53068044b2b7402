// Package device finds the NVIDIA devices of this machine: through nvidia-smi, or first through the driver's library, NVML, in
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
	"os"
	"regexp"
	"slices"
	"strings"
)

// Device is one accelerator.
type Device struct {
	Index     int // as the driver numbers them, by bus; CUDA may number otherwise
	UUID      string
	Model     string
	MemoryMiB int  // 0 if the driver does not tell
	MIG       bool // it is divided into instances. CUDA gives a process one of them, never the whole: it is not scheduled
}

// Type is its accelerator type in configs.
func (d Device) Type() string { return TypeOf(d.Model) }

// Found is what a search came to.
type Found struct {
	Devices []Device // by index
	Source  string   // what told of them; empty without a driver
	Reason  string   // why there are none; empty when there are some
}

// Group is the devices of one type.
type Group struct {
	Type    string
	Devices []Device // by index
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

// String tells in one line what there is to schedule, or why there is nothing.
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
		if d.MIG {
			text += fmt.Sprintf("; device %d is left out, it is divided by MIG", d.Index)
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
		slices.SortFunc(devices, func(a, b Device) int { return cmp.Compare(a.Index, b.Index) })
		found := Found{Devices: devices, Source: s.name}
		if len(devices) == 0 {
			found.Reason = "the NVIDIA driver shows no device"
			return found, nil
		}
		return found.visible(lookup)
	}
	return Found{Reason: "no NVIDIA driver: " + strings.Join(missing, ", ")}, nil
}

// deviceID is the shape of a UUID: it goes into the environment of jobs.
var deviceID = regexp.MustCompile(`^GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// check refuses answers that would have two jobs share a device.
func check(devices []Device) error {
	indexes, ids := map[int]bool{}, map[string]bool{}
	for _, d := range devices {
		id := strings.ToLower(d.UUID)
		switch {
		case d.Index < 0 || indexes[d.Index]:
			return fmt.Errorf("device %d is negative or listed twice", d.Index)
		case !deviceID.MatchString(d.UUID):
			return fmt.Errorf("device %d has the UUID %q", d.Index, d.UUID)
		case ids[id]:
			return fmt.Errorf("two devices have the UUID %q", d.UUID)
		case d.Model == "" || strings.HasPrefix(d.Model, "["): // such as [GPU is lost]
			return fmt.Errorf("device %d has the model %q", d.Index, d.Model)
		case d.MemoryMiB < 0:
			return fmt.Errorf("device %d has %d MiB of memory", d.Index, d.MemoryMiB)
		}
		indexes[d.Index], ids[id] = true, true
	}
	return nil
}
