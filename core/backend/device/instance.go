package device

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core/mig"
)

// profileName is what a driver calls a kind of MIG instance: 3g.20gb has 3 compute slices and 20 GB, 1c.3g.20gb one of the 3 compute slices of such an
// instance and its memory together with others, and 1g.10gb+me one that has the engines for media, too.
var profileName = pattern(`^(?:([1-9])c\.)?([1-9]g)\.([1-9][0-9]{0,3})gb(?:[+-][a-z]+(?:\.[a-z]+)*)*$`)

// nominalMiB is the memory that the name of a profile tells, which is rounded up: an instance has up to a twentieth less.
func nominalMiB(profile string) int {
	parts := profileName().FindStringSubmatch(profile)
	if parts == nil {
		return 0
	}
	gb, _ := strconv.Atoi(parts[3]) // a few digits always are a number
	return gb * 1024
}

// checkLayout refuses instances that no device can have at once: no places are left for some of them. One that has a profile which core/mig does not know is
// not looked at, for it may be of a model to come. Smaller devices, of 4 slices, have no layout that a larger one could not have.
func checkLayout(instances []Device) error {
	var list []mig.Profile
	divided := map[mig.Profile]int{} // compute slices of parts of instances, by the profile of these
	for i := range instances {
		parts := profileName().FindStringSubmatch(instances[i].Profile) // its shape was checked
		p, known := mig.ByName(parts[2])
		switch {
		case !known:
			return nil
		case parts[1] == "":
			list = append(list, p)
		default:
			divided[p] += int(parts[1][0] - '0')
		}
	}
	for _, p := range mig.Profiles() {
		for range (divided[p] + mig.Of(p).Compute - 1) / mig.Of(p).Compute { // so many instances at least
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b mig.Profile) int { return cmp.Compare(b, a) })
	if !fit(0, list) {
		names := make([]string, len(instances))
		for i := range instances {
			names[i] = instances[i].Profile
		}
		return fmt.Errorf("no device has instances %s at once", strings.Join(names, ", "))
	}
	return nil
}

// fit reports whether there are places for instances beside those of a layout.
func fit(l mig.Layout, list []mig.Profile) bool {
	if len(list) == 0 {
		return true
	}
	for _, start := range mig.Of(list[0]).Starts {
		if l.Fits(list[0], start) && fit(l|mig.At(list[0], start), list[1:]) {
			return true
		}
	}
	return false
}

// Lines of `nvidia-smi -L`.
var (
	deviceLine   = pattern(`^GPU ([0-9]{1,4}): (.+) \(UUID: (\S+)\)$`)
	instanceLine = pattern(`^\s+MIG (\S+)\s+Device\s+([0-9]{1,4}): \(UUID: (\S+)\)$`)
)

// parseList reads the instances out of what `nvidia-smi -L` says, by the UUIDs of their devices.
func parseList(answer []byte) (map[string][]Device, error) {
	instances := map[string][]Device{}
	var of *Device
	lines := bufio.NewScanner(bytes.NewReader(answer))
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " \t\r")
		if line == "" {
			continue
		}
		if parts := deviceLine().FindStringSubmatch(line); parts != nil {
			index, _ := strconv.Atoi(parts[1]) // a few digits always are a number
			if _, twice := instances[parts[3]]; twice {
				return nil, fmt.Errorf("device %d is listed twice", index)
			}
			of = &Device{Index: index, Model: parts[2], UUID: parts[3]}
			instances[of.UUID] = nil
			continue
		}
		parts := instanceLine().FindStringSubmatch(line)
		switch {
		case parts == nil:
			return nil, fmt.Errorf("line %q is of no device", line)
		case of == nil:
			return nil, fmt.Errorf("line %q comes before its device", line)
		}
		number, _ := strconv.Atoi(parts[2]) // a few digits always are a number
		instances[of.UUID] = append(instances[of.UUID], Device{
			Index: of.Index, Model: of.Model, UUID: parts[3], Profile: parts[1], Instance: number, MemoryMiB: nominalMiB(parts[1]),
		})
	}
	return instances, lines.Err()
}

// withInstances adds the instances of devices that are divided.
func withInstances(devices []Device, instances map[string][]Device) ([]Device, error) {
	for _, d := range slices.Clone(devices) {
		found := instances[d.UUID]
		if !d.MIG {
			if len(found) > 0 {
				return nil, fmt.Errorf("device %d is not divided by MIG, and has %d instances", d.Index, len(found))
			}
			continue
		}
		for _, i := range found {
			i.Index, i.Model = d.Index, d.Model
			devices = append(devices, i)
		}
	}
	return devices, nil
}
