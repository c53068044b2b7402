package local

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// hierarchy is a tree of control groups with controllers that are needed.
type hierarchy struct {
	unified     bool // of version 2, in which a group with processes has no groups below that are limited
	controllers []string
	own         string // the group of this process
}

const (
	cpuController    = "cpu"
	memoryController = "memory"
)

var groupOfRun = regexp.MustCompile(`^quartet-([0-9]+)-([0-9]+)$`)

// newLimits makes the groups of all replicas of a run.
func newLimits(o *orders) (limits, error) {
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

// makeGroups makes all groups, or none.
func makeGroups(hierarchies []hierarchy, name string, o *orders) (limits, error) {
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

// parent is where the group of a run can be.
func (h *hierarchy) parent() (string, error) {
	if !h.unified {
		return h.own, writeTo(h.own, "tasks", "0") // the keeper must be able to go back there
	}
	err := h.handDown(h.own)
	if errors.Is(err, syscall.EBUSY) { // it holds processes, the keeper at least
		beside := filepath.Dir(h.own)
		if err = h.handDown(beside); err != nil {
			err = fmt.Errorf("no group can be made below %s, which holds processes, or beside it: %w", h.own, err)
		}
		return beside, err
	}
	return h.own, err
}

// handDown lets the groups below one have the controllers.
func (h *hierarchy) handDown(group string) error {
	const file = "cgroup.subtree_control"
	handed, err := os.ReadFile(filepath.Join(group, file))
	if err != nil {
		return err
	}
	for _, controller := range h.controllers {
		if slices.Contains(strings.Fields(string(handed)), controller) {
			continue
		}
		if err := writeTo(group, file, "+"+controller); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) make(o *orders) error {
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

func settings(unified bool, controller string, o *orders) []setting {
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

// removeGroup removes a group and those below it, which may be of the job's making.
func removeGroup(dir string) error {
	var groups []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return nil // what is not seen is not removed, and tells by the folder above it
	})
	for _, group := range slices.Backward(groups) {
		if err := syscall.Rmdir(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "rmdir", Path: group, Err: err}
		}
	}
	return nil
}

// removeLeftOvers removes the groups of keepers that were killed, as far as nobody is in them.
func removeLeftOvers(parent string) {
	entries, _ := os.ReadDir(parent) // there may be some another time
	for _, entry := range entries {
		name := groupOfRun.FindStringSubmatch(entry.Name())
		if name == nil {
			continue
		}
		pid, err := strconv.Atoi(name[1])
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); !ok || p.start != name[2] {
			_ = removeGroup(filepath.Join(parent, entry.Name())) // the next keeper tries again
		}
	}
}

// findHierarchies finds the groups of this process that have controllers, from the texts of /proc/self/mountinfo and
// /proc/self/cgroup.
func findHierarchies(mounts, memberships string, controllers []string) ([]hierarchy, error) {
	var list []hierarchy
	for _, controller := range controllers {
		path, unified, ok := membership(memberships, controller)
		if !ok {
			return nil, fmt.Errorf("the system has no control groups for %q", controller)
		}
		own, ok := mounted(mounts, path, controller, unified)
		if !ok {
			return nil, fmt.Errorf("the control groups for %q are not mounted", controller)
		}
		if i := slices.IndexFunc(list, func(h hierarchy) bool { return h.own == own }); i >= 0 {
			list[i].controllers = append(list[i].controllers, controller)
			continue
		}
		list = append(list, hierarchy{unified, []string{controller}, own})
	}
	return list, nil
}

// membership finds the group of a process for a controller among lines such as "4:memory:/a/b". The line "0::/a/b" is for the
// controllers that are in no other.
func membership(lines, controller string) (path string, unified, ok bool) {
	for line := range strings.Lines(lines) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(fields) < 3:
		case slices.Contains(strings.Split(fields[1], ","), controller):
			return fields[2], false, true
		case fields[0] == "0" && fields[1] == "":
			path, unified, ok = fields[2], true, true
		}
	}
	return path, unified, ok
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mounted finds the folder of a group. A line of mounts is "36 31 0:33 ROOT FOLDER OPTIONS... - TYPE SOURCE OPTIONS".
func mounted(lines, path, controller string, unified bool) (string, bool) {
	for line := range strings.Lines(lines) {
		before, after, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		if unified && kind[0] != "cgroup2" || !unified && (kind[0] != "cgroup" || !slices.Contains(strings.Split(kind[2], ","), controller)) {
			continue
		}
		root, folder := unescape.Replace(place[3]), unescape.Replace(place[4])
		below, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(below) || filepath.Clean(root) != root || filepath.Clean(path) != path {
			continue // not in sight: a path from outside of a namespace begins with "/.."
		}
		return filepath.Join(folder, below), true
	}
	return "", false
}

func writeTo(group, file, value string) error {
	f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
