package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// processes measures what whole processes take: start-up, reading, the run, and all files written.
func (b *bench) processes() (table [][]string, err error) {
	folder, err := os.MkdirTemp("", "quartet-processes")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	million := filepath.Join(folder, "million.csv")
	if err := b.generate(million, "jobs=1000000", "span=8760h", "durations=philly", "replicas=philly"); err != nil {
		return nil, err
	}
	rows := [][]string{{"run", "processes", "processor time, median", "least", "most", "peak memory, median"}}
	for _, p := range []struct {
		label, config string
		sets          []string
		times         int
	}{
		{
			"1,000 jobs of Blox, LAS", "papers/blox-eurosys24/las.yaml",
			onPath(filepath.Join(b.data, "reference", "blox", "ref_s1000_Las.csv")), 20,
		},
		{
			"Philly, 82,247 jobs on 2,400 GPUs, LAS", "papers/philly/las.yaml",
			onPath(filepath.Join(b.data, "data", "pollux-osdi21", "philly.csv.gz")), 5,
		},
		{
			"1,000,000 generated jobs on 4,800 GPUs, FIFO", "papers/philly/las.yaml",
			[]string{
				"workload={type: csv, config: {path: " + strconv.Quote(million) + "}}",
				"cluster.nodes=[{name: gpu, count: 600, accelerator: v100, devices: 8}]", "pipeline.allocation={type: fifo}",
			},
			3,
		},
	} {
		var cpu []time.Duration
		var peaks []int64
		for range p.times {
			s, err := b.timed(run{config: p.config, sets: p.sets})
			if err != nil {
				return nil, err
			}
			cpu, peaks = append(cpu, s.cpu), append(peaks, s.peakBytes)
		}
		slices.Sort(cpu)
		slices.Sort(peaks)
		rows = append(rows, []string{
			p.label, strconv.Itoa(p.times), thousandth(cpu[len(cpu)/2]), thousandth(cpu[0]), thousandth(cpu[len(cpu)-1]),
			megabytes(peaks[len(peaks)/2]),
		})
	}
	return rows, nil
}

// generate writes a trace of seed 7.
func (b *bench) generate(path string, sets ...string) error {
	args := []string{"trace", "generate", "--seed", "7"}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	trace, err := os.Create(path)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	command := exec.Command(b.quartet, args...)
	command.Stdout, command.Stderr = trace, &stderr
	if err := errors.Join(command.Run(), trace.Close()); err != nil {
		return fmt.Errorf("%v: %w\n%s", args, err, stderr.String())
	}
	return nil
}

// megabytes writes the peak of a process. Linux counts what its parent had in memory when it began, so that one that is no
// higher is a bound.
func megabytes(peak int64) string {
	text := fmt.Sprintf("%.0f MB", float64(peak)/1e6)
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil || peak <= own.Maxrss<<10 {
		return "at most " + text
	}
	return text
}

func thousandth(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
