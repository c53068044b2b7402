package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
)

// visibleDevices is the variable that tells a replica its device.
const visibleDevices = "CUDA_VISIBLE_DEVICES"

// prepared is a keeper that waits for its go-ahead.
type prepared struct {
	*job
	keeper *exec.Cmd
	begin  *os.File
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
		case errors.Is(err, errKilled):
			b.log.Warn("a run was lost before it began", "job", j.Spec.Name, "error", err)
			j.leave(now)
			b.interrupt(j, err.Error(), now)
		case slices.ContainsFunc(machineFaults, func(fault error) bool { return errors.Is(err, fault) }):
			dismiss(ready)
			return fmt.Errorf("start job %q: %w", j.Spec.Name, err)
		default:
			b.log.Warn("a run could not be started", "job", j.Spec.Name, "error", err)
			j.leave(now)
			b.fail(j, err.Error(), now)
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
		_, _ = p.begin.Write([]byte{1}) // a keeper that is gone is noticed
		_ = p.begin.Close()
	}
	return nil
}

// dismiss ends keepers that wait for their go-ahead.
func dismiss(keepers []prepared) {
	for _, p := range keepers {
		_ = p.begin.Close()
		_ = p.keeper.Wait() // it ends without a go-ahead
	}
}

// machineFaults are no fault of a job: as long as there is one, none could be started.
var machineFaults = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM,
}

var errKilled = errors.New("its keeper was killed")

// prepare makes the folders of a run and a keeper for it.
func (b *Backend) prepare(j *job) (prepared, error) {
	next := run{Number: j.run.Number + 1, Round: j.decided, Failures: j.run.Failures, Lost: j.run.Lost, Devices: b.devicesOf(j.seats)}
	folder := b.runFolder(j, next.Number)
	o, err := b.orders(j, folder)
	if err != nil {
		return prepared{}, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return prepared{}, err
	}
	if err := os.WriteFile(filepath.Join(folder, ordersFile), text, 0o600); err != nil { // its only reader is yet to start
		return prepared{}, err
	}
	keeper, begin, err := startKeeper(folder, b.handedDown)
	if err != nil {
		return prepared{}, err
	}
	id, alive := identify(keeper.Process.Pid)
	if !alive {
		_ = begin.Close()
		_ = keeper.Wait()
		if keeper.ProcessState.ExitCode() < 0 {
			return prepared{}, errKilled
		}
		return prepared{}, fmt.Errorf("the keeper ended at once; see %s/keeper.log", folder)
	}
	next.Keeper = id
	j.run = next
	return prepared{j, keeper, begin}, nil
}

// orders says what the replicas of a run are, and makes their folders.
func (b *Backend) orders(j *job, folder string) (*orders, error) {
	e := agent.Environment{
		Job: j.Spec.Name, Replicas: core.Replicas(j.seats), Nodes: len(j.seats), Rendezvous: filepath.Join(folder, "peers"),
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
	o := &orders{Command: command, Dir: dir, GraceSeconds: b.config.Grace.Seconds()}
	o.bound(&b.config, &j.Spec)
	for rank, device := range b.devicesOf(j.seats) {
		e.Rank = rank
		log := filepath.Join(logs, strconv.Itoa(rank))
		o.Replicas = append(o.Replicas, replica{
			Environment: environment(b.handedDown, j.Process.Environment, slices.Concat(e.Variables(), variables, []string{visibleDevices + "=" + b.meta.Devices[device]})...),
			Out:         log + ".out", Err: log + ".err",
		})
	}
	return o, nil
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
func (b *Backend) started(j *job, keeper *exec.Cmd) {
	b.watch(j)
	gone := j.gone
	go func() {
		_ = keeper.Wait() // its last word is in its folder
		b.ends(gone)
	}()
}

// watch begins to look after a run.
func (b *Backend) watch(j *job) {
	j.again, j.watched, j.gone, j.watch = false, true, make(chan struct{}), watch{}
	b.agent.Expect(j.Spec.Name)
	if j.wanted() {
		b.sendTuning(j)
	}
}

func (b *Backend) unwatch(j *job) {
	j.watched = false
	j.reported.fresh, j.reported.told = false, core.Measurement{}
	b.agent.Forget(j.Spec.Name)
}

// endStrays kills what runs in the folders of jobs, or in that of one run, and is not to be spared: keepers, their
// replicas, and what the replicas of keepers that are gone left behind. It returns when all of it is gone.
func endStrays(folder string, spare func(keeper identity) bool) {
	below := func(path string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
	for {
		var found []identity
		spared := map[string]bool{} // folders of runs
		for _, p := range withVariable(keeperVariable) {
			switch {
			case !below(p.value):
			case spare != nil && spare(p.identity):
				spared[p.value] = true
			default:
				found = append(found, p.identity)
			}
		}
		for _, p := range withVariable(agent.RendezvousVariable) {
			if below(p.value) && !spared[filepath.Dir(p.value)] {
				found = append(found, p.identity)
			}
		}
		if len(found) == 0 {
			return
		}
		for _, id := range found {
			kill(id)
		}
		time.Sleep(lookAgain)
	}
}
