package keeper

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// limits are the control groups of a run: quartet-PID-START/RANK, after the keeper, below the group that it runs in. The
// libraries for containers do this too, with a hundred times the code.
type limits struct{ trees []tree }

// tree is what a run has in one hierarchy of control groups.
type tree struct {
	hierarchy
	run string // its group
}

const (
	cpuController    = "cpu"
	memoryController = "memory"
)

// newLimits makes the groups of all replicas of a run.
func newLimits(o *Orders) (limits, error) {
	self, ok := readProcess(os.Getpid())
	if !ok {
		return limits{}, errors.New("there is no /proc")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return limits{}, err
	}
	memberships, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return limits{}, err
	}
	var wanted []string
	if o.CPUs > 0 {
		wanted = append(wanted, cpuController)
	}
	if o.MemoryBytes > 0 {
		wanted = append(wanted, memoryController)
	}
	hierarchies, err := findHierarchies(string(mounts), string(memberships), wanted)
	if err != nil {
		return limits{}, err
	}
	return makeGroups(hierarchies, fmt.Sprintf("quartet-%d-%s", self.pid, self.start), o)
}

// CheckLimits says why replicas could not be held to limits on processors and memory: it makes groups as a keeper that this process starts would, and
// removes them.
func CheckLimits() error {
	l, err := newLimits(&Orders{Replicas: make([]Replica, 1), CPUs: 1, MemoryBytes: 1 << 40})
	return errors.Join(err, l.remove())
}

// makeGroups makes all groups, or none.
func makeGroups(hierarchies []hierarchy, name string, o *Orders) (limits, error) {
	var l limits
	for _, h := range hierarchies {
		parent, err := h.parent()
		if err == nil {
			removeLeftOvers(parent)
			t := tree{h, filepath.Join(parent, name)}
			l.trees = append(l.trees, t)
			err = t.make(o)
		}
		if err != nil {
			return limits{}, errors.Join(err, l.remove())
		}
	}
	return l, nil
}

func (t *tree) make(o *Orders) error {
	if err := os.Mkdir(t.run, 0o700); err != nil {
		return err
	}
	if t.unified {
		if err := t.handDown(t.run); err != nil {
			return err
		}
	}
	for rank := range o.Replicas {
		group := t.group(rank)
		if err := os.Mkdir(group, 0o700); err != nil {
			return err
		}
		for _, controller := range t.controllers {
			for _, s := range settings(t.unified, controller, o) {
				if err := writeTo(group, s.file, s.value); err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
					return err
				}
			}
		}
	}
	return nil
}

func (t *tree) group(rank int) string { return filepath.Join(t.run, strconv.Itoa(rank)) }

// setting is what is written into a file of a group.
type setting struct {
	file, value string
	optional    bool // not every system has it
}

const periodMicros = 100_000

func settings(unified bool, controller string, o *Orders) []setting {
	quota, memory := strconv.Itoa(int(o.CPUs*periodMicros)), strconv.FormatInt(o.MemoryBytes, 10)
	switch {
	case controller == cpuController && unified:
		return []setting{{file: "cpu.max", value: fmt.Sprintf("%s %d", quota, periodMicros)}}
	case controller == cpuController:
		return []setting{{file: "cpu.cfs_period_us", value: strconv.Itoa(periodMicros)}, {file: "cpu.cfs_quota_us", value: quota}}
	case unified:
		return []setting{
			{file: "memory.max", value: memory},
			{"memory.swap.max", "0", true},
			{"memory.oom.group", "1", true}, // half a replica is of no use
		}
	default:
		return []setting{{file: "memory.limit_in_bytes", value: memory}, {"memory.memsw.limit_in_bytes", memory, true}}
	}
}

// start starts a replica in its groups: no instant of it is outside.
func (l *limits) start(c *exec.Cmd, rank int) (err error) {
	for i := range l.trees {
		t := &l.trees[i]
		if t.unified {
			group, err := os.Open(t.group(rank))
			if err != nil {
				return err
			}
			defer group.Close()
			c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(group.Fd())
			continue
		}
		// In version 1 a process begins in the groups of the thread that starts it. The caller is bound to its thread.
		if err := writeTo(t.group(rank), "tasks", "0"); err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, writeTo(t.own, "tasks", "0")) }()
	}
	return c.Start()
}

// exceeded reports whether a process of a replica was killed because the replica had used up its memory.
func (l *limits) exceeded(rank int) bool {
	for i := range l.trees {
		t := &l.trees[i]
		if !slices.Contains(t.controllers, memoryController) {
			continue
		}
		file := "memory.oom_control"
		if t.unified {
			file = "memory.events"
		}
		text, _ := os.ReadFile(filepath.Join(t.group(rank), file)) // a system without it does not tell
		for line := range bytes.Lines(text) {
			if count, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("oom_kill ")); ok {
				return string(count) != "0"
			}
		}
	}
	return false
}

// Groups are busy for a moment after the last of their processes.
const (
	removals        = 100
	removalInterval = 10 * time.Millisecond
)

// remove removes the groups. Nobody is in them any more.
func (l *limits) remove() error {
	var problems []error
	for i := range l.trees {
		err := removeGroup(l.trees[i].run)
		for range removals {
			if !errors.Is(err, syscall.EBUSY) {
				break
			}
			time.Sleep(removalInterval)
			err = removeGroup(l.trees[i].run)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
