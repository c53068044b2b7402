package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type bench struct {
	quartet, data string
	out           string       // for files that one measurement needs
	kept          string       // for runs, which tables share
	binary        []byte       // its hash: a run is known by what it was run with
	count         atomic.Int64 // of runs
}

func newBench(quartet, data, out, kept string) (*bench, error) {
	text, err := os.ReadFile(quartet)
	if err != nil {
		return nil, err
	}
	binary := sha256.Sum256(text)
	return &bench{quartet: quartet, data: data, out: out, kept: kept, binary: binary[:]}, nil
}

// outcome is what one run came to.
type outcome struct {
	Name string `json:"name"`
	JCT  struct {
		Mean, P50, P99, Max float64
	} `json:"jct_seconds"`
	Queueing struct {
		Mean float64
	} `json:"queueing_seconds"`
	Restarts struct {
		Mean float64
	} `json:"restarts"`
	Makespan    float64             `json:"makespan_seconds"`
	Utilization float64             `json:"utilization_ratio"`
	GPUHours    float64             `json:"gpu_hours"`
	Preemptions int                 `json:"preemptions"`
	jobs        map[string][]string // rows of jobs.csv by name
	cpu         time.Duration       // processor time of the process
}

// run is a composition, by its path below configs/, and what is set in it.
type run struct {
	config string
	sets   []string
}

// simulate runs a shipped composition of a publication.
func (b *bench) simulate(config string, sets ...string) (*outcome, error) {
	return b.once(run{filepath.Join("papers", config), sets})
}

// all runs compositions beside one another, as many as there are processors.
func (b *bench) all(runs []run) ([]*outcome, error) {
	outcomes, errs := make([]*outcome, len(runs)), make([]error, len(runs))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var waiting sync.WaitGroup
	for i, r := range runs {
		waiting.Go(func() {
			slots <- struct{}{}
			outcomes[i], errs[i] = b.once(r)
			<-slots
		})
	}
	waiting.Wait()
	return outcomes, errors.Join(errs...)
}

// once runs a composition, unless the same was kept.
func (b *bench) once(r run) (*outcome, error) {
	config, err := os.ReadFile(filepath.Join("configs", r.config))
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%x\n%s\n%q", b.binary, config, r.sets))
	dir := filepath.Join(b.kept, hex.EncodeToString(key[:8]))
	if o, err := read(dir); !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	fresh := dir + "-" + strconv.FormatInt(b.count.Add(1), 10)
	if _, err := b.simulateInto(fresh, r); err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another one may have been faster
		return nil, err
	}
	return read(dir)
}

// again runs a composition, and returns the processor time of the whole process.
func (b *bench) again(r run) (time.Duration, error) {
	dir := filepath.Join(b.out, "again-"+strconv.FormatInt(b.count.Add(1), 10))
	cpu, err := b.simulateInto(dir, r)
	return cpu, errors.Join(err, os.RemoveAll(dir))
}

func (b *bench) simulateInto(dir string, r run) (cpu time.Duration, err error) {
	args := []string{"simulate", "-q", "-o", "json", "--out", dir, "-f", filepath.Join("configs", r.config)}
	for _, set := range r.sets {
		args = append(args, "--set", set)
	}
	var stderr bytes.Buffer
	command := exec.Command(b.quartet, args...)
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("%v: %w\n%s", args, err, stderr.String())
	}
	cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return cpu, errors.Join(
		os.WriteFile(filepath.Join(dir, "cpu"), []byte(cpu.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "summary.json"), stdout, 0o644),
	)
}

// read reads a run that was kept.
func read(dir string) (*outcome, error) {
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		return nil, err
	}
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	spent, err := os.ReadFile(filepath.Join(dir, "cpu"))
	if err != nil {
		return nil, err
	}
	if o.cpu, err = time.ParseDuration(string(spent)); err != nil {
		return nil, err
	}
	o.jobs, err = readRows(filepath.Join(dir, o.Name, "jobs.csv"), 1)
	return &o, err
}

// readRows reads a CSV file without its header, by the value in a column.
func readRows(path string, key int) (map[string][]string, error) {
	records, err := readCSV(path)
	if err != nil {
		return nil, err
	}
	rows := make(map[string][]string, len(records))
	for _, record := range records[1:] {
		rows[record[key]] = record
	}
	return rows, nil
}

// readCSV reads a file that has a header.
func readCSV(path string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err == nil && len(records) == 0 {
		err = errors.New("no header")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return records, nil
}

// The columns of jobs.csv and of the references that are compared.
const (
	jobSubmit, jobFirstStart, jobFinish, jobJCT = 3, 4, 5, 6
	polluxJCT                                   = 4
	bloxFirstRun, bloxCompletion                = 5, 6
)

// tail is the 99th percentile of the JCT as the published figures take it, and the moment at which the last job
// finished.
func (o *outcome) tail() (p99, last float64, err error) {
	var times []float64
	for _, job := range o.jobs {
		jct, errJCT := strconv.ParseFloat(job[jobJCT], 64)
		finish, errFinish := strconv.ParseFloat(job[jobFinish], 64)
		if err := errors.Join(errJCT, errFinish); err != nil {
			return 0, 0, err
		}
		times, last = append(times, jct), max(last, finish)
	}
	slices.Sort(times)
	return percentile(times, 0.99), last, nil
}

// percentile interpolates linearly between sorted values.
func percentile(sorted []float64, part float64) float64 {
	at := part * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (sorted[above]-sorted[below])*(at-float64(below))
}

func same(got, want string, offset float64) bool {
	g, errGot := strconv.ParseFloat(got, 64)
	w, errWant := strconv.ParseFloat(want, 64)
	return errGot == nil && errWant == nil && g+offset == w
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func percent(got, want float64) string { return fmt.Sprintf("%+.3f %%", 100*(got/want-1)) }
