//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/internal/kubecluster"
)

type bench struct {
	seed    uint64
	jobs    int
	span    time.Duration
	speedup float64 // of the applications that elastic jobs train
	cluster string  // folder of the cluster
	dir     string
	keep    string

	api  *kubecluster.Cluster
	list []job
}

// job is one job, in seconds.
type job struct {
	name            string
	submit, seconds float64 // the time that it takes; 0 for an elastic one
	replicas        int

	spec, annotations map[string]any // of an elastic one

	after float64 // the second of its creation had passed so far when it was there
}

func (j *job) elastic() bool { return j.seconds == 0 }

// object is the job as the cluster has it.
func (j *job) object(name string) map[string]any {
	annotations := map[string]any{}
	if !j.elastic() {
		annotations["trainee.quartet.sched/work"] = fmt.Sprint(j.seconds * float64(j.replicas))
	}
	maps.Copy(annotations, j.annotations)
	spec := map[string]any{"requested": j.replicas, "template": map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.com/trainer:1"}}},
	}}
	maps.Copy(spec, j.spec)
	return map[string]any{"apiVersion": "quartet.sched/v1alpha1", "kind": "TrainingJob", "metadata": map[string]any{"name": name}, "spec": spec}
}

// outcome is what a run came to.
type outcome struct {
	JCT struct {
		Mean float64
	} `json:"jct_seconds"`
	Makespan float64 `json:"makespan_seconds"`
	Restarts struct{ Total int }
	Jobs     struct{ Submitted, Completed int }
}

const (
	namespace = "kubereality"
	jobsPath  = "/apis/quartet.sched/v1alpha1/namespaces/" + namespace + "/trainingjobs"
	median    = 18.0 // seconds of a job
	shortest  = 5.0
	longest   = 90.0
)

// prepare makes the jobs, as many as are asked for, and a program.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.api, err = kubecluster.Open(b.cluster); err != nil {
		return fmt.Errorf("%w: start a cluster with \"make kube KUBE_NODES=4 KUBE_DEVICES=4\"", err)
	}
	r := rand.New(rand.NewPCG(b.seed, 0))
	for i := range b.jobs {
		b.list = append(b.list, job{
			name: fmt.Sprintf("job-%d", i), submit: math.Round(10*b.span.Seconds()*float64(i)/float64(b.jobs)) / 10,
			seconds:  math.Round(10*min(max(median*math.Exp(0.8*r.NormFloat64()), shortest), longest)) / 10,
			replicas: []int{1, 1, 2, 4}[r.IntN(4)],
		})
	}
	text := &strings.Builder{}
	fmt.Fprintln(text, "name,submit_s,duration_s,replicas")
	for _, j := range b.list {
		fmt.Fprintf(text, "%s,%v,%v,%d\n", j.name, j.submit, j.seconds, j.replicas)
	}
	for name, content := range map[string][]byte{"config.yaml": config, "jobs.csv": []byte(text.String())} {
		if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", b.dir, "./cmd/quartet", "./cmd/quartet-kubernetes")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	definition := exec.CommandContext(ctx, filepath.Join(b.dir, "quartet"), "kube", "crd")
	crd, err := definition.Output()
	if err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, "kubectl", "--kubeconfig", b.api.Kubeconfig, "apply", "--server-side", "-f", "-")
	apply.Stdin = bytes.NewReader(crd)
	if text, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("install the definition of jobs: %w\n%s", err, text)
	}
	return nil
}

// arguments are those of a command on the config.
func (b *bench) arguments(command, name string, sets ...string) []string {
	args := []string{command, "-q", "-o", "json", "-f", filepath.Join(b.dir, "config.yaml"), "--out", b.dir, "--set", "name=" + name}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	return args
}

// run runs jobs on the cluster.
func (b *bench) run(ctx context.Context, name string, sets []string, list []job) (o *outcome, err error) {
	if err := b.fresh(ctx); err != nil {
		return nil, err
	}
	agent := filepath.Join(b.api.Dir, "agent")
	args := b.arguments("run", name+"-run", append(sets, fmt.Sprintf(
		"backend={type: kubernetes, config: {kubeconfig: %q, watch: %s, agent_address: '127.0.0.1:9443', agent_listen: '127.0.0.1:9443', agent_tls: %q}}",
		b.api.Kubeconfig, namespace, agent))...)
	c := exec.CommandContext(ctx, filepath.Join(b.dir, "quartet"), args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	failure := errors.Join(b.submit(ctx, list), c.Process.Signal(syscall.SIGINT))
	if err := c.Wait(); err != nil && stdout.Len() == 0 {
		return nil, errors.Join(failure, fmt.Errorf("run %s: %w\n%s", name, err, &stderr))
	}
	if failure != nil {
		return nil, failure
	}
	if o, err = read(stdout.Bytes()); err != nil {
		return nil, fmt.Errorf("read the summary of %s: %w\n%s", name, err, &stderr)
	}
	return o, nil
}

// simulate simulates the jobs with starts that take so many seconds.
func (b *bench) simulate(ctx context.Context, name string, start float64, sets []string) (*outcome, error) {
	c := exec.CommandContext(ctx, filepath.Join(b.dir, "quartet"), b.arguments("simulate", name+"-simulated", append(sets,
		fmt.Sprintf("workload={type: csv, config: {path: %q}}", filepath.Join(b.dir, "jobs.csv")),
		fmt.Sprintf("backend={type: simulator, config: {start_delay: %.3fs}}", start))...)...)
	var problems strings.Builder
	c.Stderr = &problems
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w\n%s", name, err, &problems)
	}
	return read(text)
}

func read(text []byte) (*outcome, error) {
	o := new(outcome)
	err := json.Unmarshal(text, o)
	if err == nil && o.Jobs.Completed != o.Jobs.Submitted {
		err = fmt.Errorf("%d of %d jobs completed", o.Jobs.Completed, o.Jobs.Submitted)
	}
	return o, err
}

// fresh makes the namespace anew.
func (b *bench) fresh(ctx context.Context) error {
	kubectl := func(args ...string) error {
		c := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", b.api.Kubeconfig}, args...)...)
		if text, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, text)
		}
		return nil
	}
	_ = kubectl("create", "namespace", "quartet") // it may be there
	_ = kubectl("create", "namespace", namespace) // likewise
	return kubectl("--namespace", namespace, "delete", "trainingjobs", "--all", "--wait=false")
}

// submit creates each job at its moment, and returns when all have ended. Those of a run before may be there, and are not counted.
func (b *bench) submit(ctx context.Context, list []job) error {
	if list[0].elastic() {
		if err := wholeSecond(ctx); err != nil {
			return err
		}
	}
	began := time.Now() //nolint:forbidigo // jobs come by the clock
	run := fmt.Sprintf("-%d", began.Unix())
	for i := range list {
		j := &list[i]
		if err := sleep(ctx, time.Duration(j.submit*float64(time.Second))-time.Since(began)); err != nil { //nolint:forbidigo // likewise
			return err
		}
		if _, err := b.api.Do(ctx, "POST", jobsPath, j.object(j.name+run)); err != nil {
			return err
		}
		there := time.Now() //nolint:forbidigo // likewise
		j.after = there.Sub(there.Truncate(time.Second)).Seconds()
	}
	for {
		text, err := b.api.Do(ctx, "GET", jobsPath, nil)
		if err != nil {
			return err
		}
		var found struct {
			Items []struct {
				Metadata struct{ Name string }
				Status   struct{ State string }
			}
		}
		if err := json.Unmarshal(text, &found); err != nil {
			return err
		}
		ended := 0
		for _, j := range found.Items {
			if strings.HasSuffix(j.Metadata.Name, run) && j.Status.State == "completed" {
				ended++
			}
		}
		if ended == len(list) {
			return sleep(ctx, 3*time.Second) // longer than between two rounds: it is told by then
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// meanStart is how many seconds passed on average from the decision to start a job until all of its pods ran.
func meanStart(path string) (float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	decided, sum, count := map[string]float64{}, 0.0, 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line struct {
			At                 float64 `json:"t_s"`
			Job, Event, Action string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return 0, err
		}
		switch at, begun := decided[line.Job]; {
		case line.Action == "start" || line.Action == "move":
			decided[line.Job] = line.At
		case line.Event == "job_started" && begun:
			sum, count = sum+line.At-at, count+1
			delete(decided, line.Job)
		}
	}
	if count == 0 {
		return 0, errors.Join(lines.Err(), errors.New("nothing was started"))
	}
	return sum / float64(count), lines.Err()
}
