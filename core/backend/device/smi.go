package device

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answerWithin bounds the wait for nvidia-smi: without its daemon it wakes every device first, for seconds each.
const answerWithin = 2 * time.Minute

// noDevices is all that nvidia-smi says of a machine with a driver and no device.
const noDevices = "No devices were found"

// query asks for one row per device. Drivers before 450 do not know MIG and refuse it.
var query = []string{"--query-gpu=index,uuid,name,memory.total,mig.mode.current", "--format=csv,noheader,nounits"}

// program asks nvidia-smi.
func program(name string) source {
	return source{"nvidia-smi", func(ctx context.Context) ([]Device, error) {
		path, err := exec.LookPath(name)
		if errors.Is(err, exec.ErrNotFound) {
			return nil, absent("nvidia-smi is not in PATH")
		}
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		answer, err := say(ctx, path, query...)
		if err != nil {
			return nil, err
		}
		devices, err := parse(answer)
		if err != nil || !slices.ContainsFunc(devices, func(d Device) bool { return d.MIG }) {
			return devices, err
		}
		if answer, err = say(ctx, path, "-L"); err != nil {
			return nil, fmt.Errorf("list instances of MIG: %w", err)
		}
		instances, err := parseList(answer)
		if err != nil {
			return nil, fmt.Errorf("list instances of MIG: %w", err)
		}
		return withInstances(devices, instances)
	}}
}

// say runs nvidia-smi and returns what it said.
func say(ctx context.Context, path string, arguments ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, path, arguments...)
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	c.WaitDelay = time.Second // what it started may hold the pipes
	err := c.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	case err != nil && firstLine(out.Bytes()) != noDevices:
		// It writes most of its complaints to standard output.
		return nil, fmt.Errorf("%w: it said %q", err, cmp.Or(firstLine(complaint.Bytes()), firstLine(out.Bytes())))
	}
	return out.Bytes(), nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(line)
}

// parse reads the answer to the query.
func parse(answer []byte) ([]Device, error) {
	if strings.TrimSpace(string(answer)) == noDevices {
		return nil, nil
	}
	rows := csv.NewReader(bytes.NewReader(answer))
	rows.FieldsPerRecord, rows.TrimLeadingSpace = -1, true
	all, err := rows.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the answer is empty")
	}
	devices := make([]Device, len(all))
	for i, row := range all {
		if devices[i], err = parseRow(row); err != nil {
			return nil, fmt.Errorf("%q: %w", strings.Join(row, ", "), err)
		}
	}
	return devices, nil
}

func parseRow(row []string) (Device, error) {
	if len(row) != 5 {
		return Device{}, fmt.Errorf("%d values instead of 5", len(row))
	}
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	d := Device{UUID: row[1], Model: row[2]}
	var err error
	if d.Index, err = strconv.Atoi(row[0]); err != nil {
		return Device{}, fmt.Errorf("index %q", row[0])
	}
	if !isUnknown(row[3]) {
		if d.MemoryMiB, err = strconv.Atoi(row[3]); err != nil {
			return Device{}, fmt.Errorf("memory %q", row[3])
		}
	}
	switch mode := row[4]; {
	case mode == "Enabled":
		d.MIG = true
	case mode != "Disabled" && !isUnknown(mode):
		return Device{}, fmt.Errorf("MIG mode %q", mode)
	}
	return d, nil
}

// isUnknown reports whether a value is one that the device does not have. Anything else in brackets tells of a defect.
func isUnknown(value string) bool {
	return value == "[N/A]" || value == "N/A" || value == "[Not Supported]"
}
