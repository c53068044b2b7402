package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// hierarchy is a tree of control groups with controllers that are needed.
type hierarchy struct {
	unified     bool // of version 2, in which a group with processes has no groups below that are limited
	controllers []string
	own         string // the group of this process
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

var groupOfRun = regexp.MustCompile(`^quartet-([0-9]+)-([0-9]+)$`)

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
