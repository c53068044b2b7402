package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
)

// referenceCPU is what the reference took for the same run, in seconds (spec/pollux.md, section 11.3).
const referenceCPU = 519

// polluxCPU measures whole processes: user and system time of start-up, reading, a run with learned models and the files
// written; and the fits alone.
func (b *bench) polluxCPU() ([][]string, error) {
	rows := [][]string{{"what", "median", "least", "most", "reference over median"}}
	for _, c := range []struct{ label, config string }{{"pollux-exact", polluxExact}, {"pollux-best", polluxBest}} {
		var times []float64
		for range 5 {
			s, err := b.timed(run{config: c.config, sets: onPath(b.workload("1.0", "6"))})
			if err != nil {
				return nil, err
			}
			times = append(times, s.cpu.Seconds())
		}
		slices.Sort(times)
		rows = append(rows, []string{
			c.label + ", workload 6, whole process", hundredth(times[2]) + " s", hundredth(times[0]) + " s", hundredth(times[4]) + " s",
			fmt.Sprintf("%.0f ×", referenceCPU/times[2]),
		})
	}
	fits, err := fitTimes()
	if err != nil {
		return nil, err
	}
	return append(rows, []string{"one fit of a model, median over single fits", micro(fits[2]), micro(fits[0]), micro(fits[4]), ""}), nil
}

var perFit = regexp.MustCompile(`([\d.]+) median-µs/fit`)

// fitTimes runs the benchmark of the 30 published fits five times, and returns the medians over single fits in
// microseconds, ascending.
func fitTimes() ([]float64, error) {
	text, err := exec.Command("go", "test", "-run=^$", "-bench=^BenchmarkFit$", "-count=5", "./core/goodput").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench Fit: %w\n%s", err, text)
	}
	var times []float64
	for _, match := range perFit.FindAllSubmatch(text, -1) {
		x, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			return nil, err
		}
		times = append(times, x)
	}
	if len(times) != 5 {
		return nil, fmt.Errorf("go test -bench Fit: %d figures, want 5\n%s", len(times), text)
	}
	slices.Sort(times)
	return times, nil
}

func micro(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) + " µs" }
