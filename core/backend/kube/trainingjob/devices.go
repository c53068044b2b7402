package trainingjob

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// FormatDevices writes a set of devices as ranges in ascending order, such as "0-3,6". The empty set is "".
func FormatDevices(set core.DeviceSet) string {
	var b strings.Builder
	for rest := uint64(set); rest != 0; {
		first := bits.TrailingZeros64(rest)
		count := bits.TrailingZeros64(^(rest >> first))
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if count > 1 {
			b.WriteString("-" + strconv.Itoa(first+count-1))
		}
		if first+count >= core.MaxDevicesPerNode {
			break
		}
		rest &^= 1<<(first+count) - 1
	}
	return b.String()
}

// ParseDevices reads what FormatDevices writes. Ranges may touch, but they ascend and do not overlap.
func ParseDevices(text string) (core.DeviceSet, error) {
	var set core.DeviceSet
	next := 0
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		from, to, isRange := strings.Cut(part, "-")
		first, err := parseDevice(from)
		last := first
		if err == nil && isRange {
			last, err = parseDevice(to)
		}
		switch {
		case err != nil:
			return 0, fmt.Errorf("devices %q: %q is no range of devices: %w", text, part, err)
		case last < first:
			return 0, fmt.Errorf("devices %q: range %q ends before it begins", text, part)
		case first < next:
			return 0, fmt.Errorf("devices %q: %q does not come after what is before it", text, part)
		}
		set |= core.FirstDevices(last+1) &^ core.FirstDevices(first)
		next = last + 1
	}
	return set, nil
}

func parseDevice(text string) (int, error) {
	if text == "" || len(text) > 1 && text[0] == '0' || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%q is no number", text)
	}
	device, err := strconv.Atoi(text)
	if err != nil || device >= core.MaxDevicesPerNode {
		return 0, fmt.Errorf("devices count from 0 to %d", core.MaxDevicesPerNode-1)
	}
	return device, nil
}
