package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// processes measures what whole processes take: start-up, reading, the run, and all files written.
func (b *bench) processes() ([][]string, error) {
	million := filepath.Join(b.out, "million.csv")
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
			s, err := b.again(run{config: p.config, sets: p.sets})
			if err != nil {
				return nil, err
			}
			cpu, peaks = append(cpu, s.cpu), append(peaks, s.peakBytes)
		}
		slices.Sort(cpu)
		slices.Sort(peaks)
		rows = append(rows, []string{
			p.label, strconv.Itoa(p.times), thousandth(cpu[len(cpu)/2]), thousandth(cpu[0]), thousandth(cpu[len(cpu)-1]),
			fmt.Sprintf("%.0f MB", float64(peaks[len(peaks)/2])/1e6),
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
	var stderr bytes.Buffer
	command := exec.Command(b.quartet, args...)
	command.Stderr = &stderr
	trace, err := command.Output()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", args, err, stderr.String())
	}
	return os.WriteFile(path, trace, 0o644)
}

func thousandth(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
