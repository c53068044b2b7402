package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const visibleDevices = "CUDA_VISIBLE_DEVICES"

// visible leaves those devices, and instances of MIG, that this process itself may use. Of a device that is divided CUDA takes the first instance; here
// it stands for none. CUDA ignores what it cannot resolve; here it is an error,
// since a device used by mistake may be another person's.
func (f Found) visible(lookup func(string) (string, bool)) (Found, error) {
	list, set := lookup(visibleDevices)
	if !set {
		return f, nil
	}
	order, _ := lookup("CUDA_DEVICE_ORDER")
	var kept []Device
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); nothing(entry) {
			break
		}
		d, err := f.named(entry, order == "PCI_BUS_ID")
		if err != nil {
			return Found{}, fmt.Errorf("%s is %q: %w", visibleDevices, list, err)
		}
		kept = append(kept, d)
	}
	f.Devices = slices.DeleteFunc(slices.Clone(f.Devices), func(d Device) bool { return !slices.Contains(kept, d) })
	if len(f.Devices) == 0 {
		f.Reason = fmt.Sprintf("%s is %q", visibleDevices, list)
	}
	return f, nil
}

// nothing reports whether an entry ends the list: what is written for "no device".
func nothing(entry string) bool {
	return slices.Contains([]string{"", "-1", "none", "void", "NoDevFiles"}, entry)
}

// named is the device that CUDA takes an entry for: a number, or the beginning of a UUID.
func (f Found) named(entry string, byBus bool) (Device, error) {
	if number, err := strconv.Atoi(entry); err == nil {
		if slices.ContainsFunc(f.Devices, func(d Device) bool { return d.MIG }) {
			return Device{}, fmt.Errorf("which device %d is depends on the instances of MIG; use UUIDs", number)
		}
		other := func(d Device) bool { return d.Model != f.Devices[0].Model }
		if !byBus && slices.ContainsFunc(f.Devices, other) {
			return Device{}, fmt.Errorf("which device %d is depends on their speed, they differ; use UUIDs, or set CUDA_DEVICE_ORDER=PCI_BUS_ID", number)
		}
		if i := slices.IndexFunc(f.Devices, func(d Device) bool { return d.Index == number }); i >= 0 {
			return f.Devices[i], nil
		}
		return Device{}, fmt.Errorf("there is no device %d", number)
	}
	var match []Device
	for _, d := range f.Devices {
		if strings.EqualFold(d.UUID, entry) { // MIG-GPU-.../1/0 is the beginning of MIG-GPU-.../1/01
			return d, nil
		}
		kind := strings.HasPrefix(entry, "GPU-") || strings.HasPrefix(entry, "MIG-")
		if kind && strings.HasPrefix(strings.ToLower(d.UUID), strings.ToLower(entry)) {
			match = append(match, d)
		}
	}
	if len(match) != 1 {
		return Device{}, fmt.Errorf("%q is the beginning of %d UUIDs", entry, len(match))
	}
	return match[0], nil
}
