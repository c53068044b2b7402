package main

import (
	"bytes"
	"context"
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
	"syscall"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet"
)

// The files of a run beside those of quartet.
const (
	summaryFile = "summary.json"
	cpuFile     = "cpu"
)

type bench struct {
	quartet, data string       // the binary that is timed, and the folder of published data
	out           string       // for files that one measurement needs
	kept          string       // for runs, which tables share
	program       []byte       // hash of this program: a run is known by what it was run with
	count         atomic.Int64 // of runs
}

func newBench(quartet, data, out, kept string) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	for _, path := range []string{self, quartet} {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		hash.Write(text)
	}
	return &bench{quartet: quartet, data: data, out: out, kept: kept, program: hash.Sum(nil)}, nil
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
	cpu         time.Duration       // processor time of the process, of a timed run
}

// run is a composition, by its path below configs/, and what is set in it.
type run struct {
	config string
	sets   []string
	timed  bool // in a process of its own, whose processor time is wanted
}

// simulate runs a shipped composition of a publication.
func (b *bench) simulate(config string, sets ...string) (*outcome, error) {
	return b.once(run{config: filepath.Join("papers", config), sets: sets})
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
	key := sha256.Sum256(fmt.Appendf(nil, "%x\n%s\n%q\n%t", b.program, config, r.sets, r.timed))
	dir := filepath.Join(b.kept, hex.EncodeToString(key[:8]))
	if o, err := read(dir); !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	fresh := dir + "-" + strconv.FormatInt(b.count.Add(1), 10)
	if r.timed {
		_, err = b.process(fresh, r)
	} else {
		err = b.simulateInto(fresh, r)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another one may have been faster
		return nil, err
	}
	return read(dir)
}

// simulateInto runs a composition here.
func (b *bench) simulateInto(dir string, r run) error {
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{filepath.Join("configs", r.config)}, Sets: r.sets, OutDir: dir, Env: os.LookupEnv,
	})
	if err != nil {
		return err
	}
	c.Dir, c.Brief = filepath.Join(dir, c.Name), true
	result, err := c.Simulate(context.Background())
	if err != nil {
		return fmt.Errorf("simulate %s %q: %w", r.config, r.sets, err)
	}
	return os.WriteFile(filepath.Join(dir, summaryFile), result.Text, 0o644)
}

// spent is what a process took of the machine.
type spent struct {
	cpu       time.Duration // user and system time
	peakBytes int64         // of memory
}

// again runs a composition in a process of its own, whatever is kept.
func (b *bench) again(r run) (spent, error) {
	dir := filepath.Join(b.out, "again-"+strconv.FormatInt(b.count.Add(1), 10))
	s, err := b.process(dir, r)
	return s, errors.Join(err, os.RemoveAll(dir))
}

func (b *bench) process(dir string, r run) (s spent, err error) {
	args := []string{"simulate", "-q", "-o", "json", "--out", dir, "-f", filepath.Join("configs", r.config)}
	for _, set := range r.sets {
		args = append(args, "--set", set)
	}
	var stderr bytes.Buffer
	command := exec.Command(b.quartet, args...)
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		return s, fmt.Errorf("%v: %w\n%s", args, err, stderr.String())
	}
	s.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	if used, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.peakBytes = used.Maxrss << 10 // Linux counts in KiB
	}
	return s, errors.Join(
		os.WriteFile(filepath.Join(dir, cpuFile), []byte(s.cpu.String()), 0o644),
		os.WriteFile(filepath.Join(dir, summaryFile), stdout, 0o644),
	)
}

// read reads a run that was kept.
func read(dir string) (*outcome, error) {
	text, err := os.ReadFile(filepath.Join(dir, summaryFile))
	if err != nil {
		return nil, err
	}
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	switch took, err := os.ReadFile(filepath.Join(dir, cpuFile)); {
	case errors.Is(err, fs.ErrNotExist): // it was not timed
	case err != nil:
		return nil, err
	default:
		if o.cpu, err = time.ParseDuration(string(took)); err != nil {
			return nil, err
		}
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

func mean(values []float64) float64 { return stat.Mean(values, nil) }

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func percent(got, want float64) string { return fmt.Sprintf("%+.3f %%", 100*(got/want-1)) }
