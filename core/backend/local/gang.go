package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/workload"
)

// visibleDevices is the variable that tells a replica its device.
const visibleDevices = "CUDA_VISIBLE_DEVICES"

// prepared is a keeper that waits for its go-ahead.
type prepared struct {
	*job
	keeper *keeper.Child
}

// start starts runs of jobs on their seats. Their keepers are recorded before any of them begins, so that a scheduler after
// this one knows them all, and those not recorded end by themselves.
func (b *Backend) start(jobs []*job, now float64) error {
	var ready []prepared
	var recorded []*job
	for _, j := range jobs {
		p, err := b.prepare(j)
		switch {
		case err == nil:
			ready, recorded = append(ready, p), append(recorded, j)
		case errors.Is(err, keeper.ErrKilled):
			b.log.Warn("a run was lost before it began", "job", j.Spec.Name, "error", err)
			b.lost(j, nil, failure{cause: core.CauseNeverBegan, why: err.Error(), at: now})
		case slices.ContainsFunc(machineFaults, func(fault error) bool { return errors.Is(err, fault) }):
			dismiss(ready)
			return fmt.Errorf("start job %q: %w", j.Spec.Name, err)
		default:
			b.neverStarted(j, err, now)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	if err := b.store.begin(recorded); err != nil {
		dismiss(ready)
		return fmt.Errorf("record what is started: %w", err)
	}
	for _, p := range ready {
		b.started(p.job, p.keeper)
		p.keeper.Begin()
	}
	return nil
}

// dismiss ends keepers that wait for their go-ahead.
func dismiss(keepers []prepared) {
	for _, p := range keepers {
		p.keeper.Dismiss()
	}
}

// machineFaults are no fault of a job: as long as there is one, none could be started.
var machineFaults = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM,
}

// prepare makes the folders of a run and a keeper for it.
func (b *Backend) prepare(j *job) (prepared, error) {
	next := run{Number: j.run.Number + 1, Round: j.decided, Failures: j.run.Failures, Losses: j.run.Losses, Unstarted: j.run.Unstarted, Shrunk: j.run.Shrunk, Lost: j.run.Lost, Names: b.devicesOf(j.seats)}
	folder := b.runFolder(j, next.Number)
	o, err := b.orders(j, folder)
	if err != nil {
		return prepared{}, err
	}
	child, err := keeper.Start(folder, o, b.handedDown)
	if err != nil {
		return prepared{}, err
	}
	next.Keeper = child.Identity
	b.lastWork = max(b.lastWork, b.waitedSeconds(j))
	j.run = next
	return prepared{j, child}, nil
}

// orders says what the replicas of a run are, and makes their folders.
func (b *Backend) orders(j *job, folder string) (*keeper.Orders, error) {
	e := agent.Environment{
		Job: j.Spec.Name, Replicas: core.Replicas(j.seats), Nodes: len(j.seats), Rendezvous: filepath.Join(folder, peersFolder),
		Checkpoint: filepath.Join(b.folder(j), "checkpoint"), Socket: filepath.Join(b.dir, agentSocket),
	}
	if err := os.RemoveAll(folder); err != nil { // a start that was never recorded left it
		return nil, err
	}
	logs := filepath.Join(b.folder(j), "logs")
	for _, dir := range [...]string{e.Rendezvous, e.Checkpoint, logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	dir := j.Process.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("working folder: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("working folder %q is none", dir)
	}
	command, variables, err := b.command(j, folder)
	if err != nil {
		return nil, err
	}
	if command, err = b.program(command, dir); err != nil {
		return nil, err
	}
	o := &keeper.Orders{Command: command, Dir: dir, GraceSeconds: b.config.Grace.Seconds()}
	b.config.bound(o, &j.Spec)
	for rank, device := range b.devicesOf(j.seats) {
		e.Rank = rank
		log := filepath.Join(logs, strconv.Itoa(rank))
		o.Replicas = append(o.Replicas, keeper.Replica{
			Environment: environment(b.handedDown, j.Process.Environment, slices.Concat(e.Variables(), variables, b.parted(j, device))...),
			Out:         log + ".out", Err: log + ".err",
		})
	}
	return o, nil
}

const (
	bytesInMB = 1 << 20
	bytesInGB = 1 << 30
)

// limitsOff is the setting with which keepers are told of no limits.
const limitsOff = "off"

// bound puts bounds on what the replicas of a job write and use.
func (c *Config) bound(o *keeper.Orders, j *core.JobSpec) {
	o.LogBytes, o.LogFiles = int64(c.LogMB)*bytesInMB, c.LogFiles
	if c.Limits != limitsOff {
		o.Limits, o.CPUs, o.MemoryBytes = c.Limits, j.CPUs, int64(j.MemoryGB*bytesInGB)
	}
}

// environment is what a replica sees: what is handed down, what its job asks for, and what the scheduler tells it.
func environment(handedDown []string, own []workload.Variable, told ...string) []string {
	list := append([]string{}, handedDown...)
	for _, v := range own {
		list = append(list, v.Name+"="+v.Value)
	}
	return append(list, told...)
}

// program finds the program of a command: as it is if it has a slash, relative to the working folder, in the search path
// otherwise.
func (b *Backend) program(command []string, dir string) ([]string, error) {
	found := command[0]
	switch {
	case !strings.Contains(found, "/"):
		var err error
		if found, err = exec.LookPath(found); err != nil {
			return nil, err
		}
		if found, err = filepath.Abs(found); err != nil {
			return nil, err
		}
	case !filepath.IsAbs(found):
		found = filepath.Join(dir, found)
	}
	return append([]string{found}, command[1:]...), nil
}

// started waits for a keeper that is a child of this process.
func (b *Backend) started(j *job, child *keeper.Child) {
	b.watch(j)
	gone := j.gone
	go func() {
		child.Wait()
		b.ends(gone)
	}()
}

// watch begins to look after a run.
func (b *Backend) watch(j *job) {
	j.watched, j.gone, j.watch = true, make(chan float64, 1), watch{beganAt: b.elapsed()}
	b.agent.ExpectReplicas(j.Spec.Name, max(len(j.run.Names), 1))
	if j.wanted() {
		b.sendTuning(j)
	}
}

func (b *Backend) unwatch(j *job) {
	j.watched = false
	j.reported.fresh, j.reported.told, j.reported.metrics = false, core.Measurement{}, nil
	b.agent.Forget(j.Spec.Name)
}
