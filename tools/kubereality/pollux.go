//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/kubetrainee"
)

// Elastic jobs are those of the applications of Pollux, as tools/reality has them, so many times faster: the trainings that play
// them, and the simulator, go by the same profiles.

// load loads the config under a policy.
func (b *bench) load(sets []string) (*quartet.Composition, error) {
	return quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{filepath.Join(b.dir, "config.yaml")}, Sets: sets})
}

// elastic are the jobs, submitted in whole seconds.
func (b *bench) elastic(ctx context.Context) (*workload.Workload, error) {
	c, err := b.load([]string{
		fmt.Sprintf("seed=%d", b.seed), fmt.Sprintf("workload={type: generated, config: {jobs: %d, span: 4h, applications: true}}", b.jobs),
	})
	if err != nil {
		return nil, err
	}
	w, err := quartet.LoadWorkload(ctx, c.Config, nil)
	if err != nil {
		return nil, err
	}
	w = w.Faster(b.speedup)
	for i := range w.Jobs {
		s := &w.Jobs[i].Spec
		s.SubmitSeconds = math.Floor(s.SubmitSeconds / b.speedup)
	}
	return w, nil
}

// trainingJobs are elastic jobs as a cluster has them.
func trainingJobs(w *workload.Workload, worlds bool) (list []job, err error) {
	for i := range w.Jobs {
		s := &w.Jobs[i].Spec
		profiled, ok := w.Jobs[i].Model.(workload.Profiled)
		if !ok {
			return nil, fmt.Errorf("job %s has no profile", s.Name)
		}
		batch := &s.Batch
		list = append(list, job{
			name: s.Name, submit: s.SubmitSeconds, replicas: s.Requested,
			spec: map[string]any{
				"application": s.Application, "work": s.TotalWork, "replicas": map[string]any{"min": s.MinReplicas, "max": s.MaxReplicas},
				"batch": map[string]any{
					"requested": batch.Requested, "initial": batch.Initial, "max": batch.Max, "minPerDevice": batch.MinPerDevice, "maxPerDevice": batch.MaxPerDevice,
				},
			},
			annotations: map[string]any{
				"trainee.quartet.sched/profile":        string(profiled.Profile().YAML()),
				"trainee.quartet.sched/batch":          strconv.Itoa(batch.Requested),
				"trainee.quartet.sched/report_seconds": "0.2", // often enough that each stay on some devices is measured
				"trainee.quartet.sched/worlds":         strconv.FormatBool(worlds),
			},
		})
	}
	return list, nil
}

// train runs elastic jobs under a policy on the cluster, and simulates them with the delays that were measured there.
func (b *bench) train(ctx context.Context, name string, sets []string, worlds bool) (real, simulated *outcome, d *delays, err error) {
	w, err := b.elastic(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	list, err := trainingJobs(w, worlds)
	if err != nil {
		return nil, nil, nil, err
	}
	log := filepath.Join(b.api.Dir, "log", traineeLog)
	before, err := os.Stat(log)
	if err != nil {
		return nil, nil, nil, err
	}
	if real, err = b.run(ctx, name, sets, list); err != nil {
		return nil, nil, nil, err
	}
	folder := filepath.Join(b.dir, name+"-run")
	if d, err = measureDelays(filepath.Join(folder, "decisions.jsonl")); err != nil {
		return nil, nil, nil, err
	}
	if d.begin, err = measureBegins(log, before.Size()); err != nil {
		return nil, nil, nil, err
	}
	if err := asSubmitted(w, list, filepath.Join(folder, "jobs.csv")); err != nil {
		return nil, nil, nil, err
	}
	simulated, err = b.simulateTrainings(ctx, name, d, w, worlds, sets)
	return real, simulated, d, err
}

// asSubmitted has jobs come when they came in the run, and not with the second before: where rounds are on a grid, it counts how long
// that is before one.
func asSubmitted(w *workload.Workload, list []job, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return err
	}
	name, submit := slices.Index(rows[0], "name"), slices.Index(rows[0], "submit_s")
	if name < 0 || submit < 0 || len(rows)-1 < len(w.Jobs) {
		return fmt.Errorf("%s has %d jobs", path, len(rows)-1)
	}
	at := map[string]float64{}
	for _, row := range rows[1:] {
		seconds, err := strconv.ParseFloat(row[submit], 64)
		if err != nil {
			return err
		}
		_, object, _ := strings.Cut(row[name], "/")
		at[object[:strings.LastIndexByte(object, '-')]] = seconds // without the number of the run
	}
	for i := range w.Jobs {
		s := &w.Jobs[i].Spec
		seconds, ok := at[s.Name]
		if !ok {
			return fmt.Errorf("job %s was not run", s.Name)
		}
		s.SubmitSeconds = seconds + list[i].after
	}
	if !slices.IsSortedFunc(w.Jobs, func(x, y workload.Job) int { return cmp.Compare(x.Spec.SubmitSeconds, y.Spec.SubmitSeconds) }) {
		return errors.New("jobs came in another order than they were submitted in")
	}
	return nil
}

func (b *bench) simulateTrainings(ctx context.Context, name string, d *delays, w *workload.Workload, worlds bool, sets []string) (*outcome, error) {
	c, err := b.load(append([]string{
		"name=" + name + "-simulated", fmt.Sprintf("seed=%d", b.seed), "workload={type: generated}",
		fmt.Sprintf("backend={type: simulator, config: {start_delay: %.3fs, release_delay: %.3fs, restart_overhead: %.3fs, resize: {keep_devices: true, in_place: %v}}}", d.start, d.release(), d.begin, worlds),
	}, sets...))
	if err != nil {
		return nil, err
	}
	c.Jobs, c.Dir = w, filepath.Join(b.dir, name+"-simulated")
	result, err := c.Simulate(ctx)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", name, err)
	}
	return read(result.Text)
}

// delays are how long starts took, in seconds from their decision until all pods ran.
type delays struct {
	start, restart float64 // on devices that were free; and of a job that had to leave others first
	begin          float64 // from then until they train
	starts, moves  int
}

// release is how long a job takes to leave its devices.
func (d *delays) release() float64 { return max(d.restart-d.start, 0) }

// measureDelays tells starts on free devices from those that wait until pods of a job are gone.
func measureDelays(path string) (*delays, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	type decision struct {
		at    float64
		round int
		moved bool
	}
	last, left := map[string]decision{}, map[int]bool{} // rounds in which devices had to be left
	type start struct {
		decision
		took float64
	}
	var all []start
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			At                 float64 `json:"t_s"`
			Round              int
			Job, Event, Action string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		was, begun := last[line.Job]
		switch {
		case line.Action == "start" || line.Action == "move":
			last[line.Job] = decision{line.At, line.Round, line.Action == "move"}
		case line.Event == "job_started" && begun:
			all = append(all, start{was, line.At - was.at})
			delete(last, line.Job)
		}
		if line.Action == "stop" || line.Action == "move" {
			left[line.Round] = true
		}
	}
	d := &delays{}
	for _, s := range all {
		switch {
		case s.moved:
			d.restart, d.moves = d.restart+s.took, d.moves+1
		case !left[s.round]:
			d.start, d.starts = d.start+s.took, d.starts+1
		}
	}
	if d.starts == 0 {
		return nil, errors.Join(lines.Err(), errors.New("nothing was started on devices that were free"))
	}
	d.start /= float64(d.starts)
	d.restart /= float64(max(d.moves, 1)) // of jobs that change in place nobody says when they did
	return d, lines.Err()
}

// traineeLog is what the program says that plays the trainings.
const traineeLog = "trainee.log"

var begins = regexp.MustCompile(`msg="` + kubetrainee.Begins + `" .*\bafter=(\S+)`)

// measureBegins says how long trainings take to begin once all of their pods run, by what was logged from an offset on.
func measureBegins(path string, offset int64) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	found := begins.FindAllSubmatch(text[min(offset, int64(len(text))):], -1)
	sum := 0.0
	for _, match := range found {
		seconds, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += max(seconds, 0)
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("%s has no training that begins: was the cluster started by a program of before?", path)
	}
	return sum / float64(len(found)), nil
}

// wholeSecond waits for the next second to begin: the API server keeps the moments of creation in whole seconds.
func wholeSecond(ctx context.Context) error {
	now := time.Now() //nolint:forbidigo // jobs come by the clock
	return sleep(ctx, now.Truncate(time.Second).Add(time.Second).Sub(now))
}
