package keeper

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// needLimits skips tests where limits cannot be set.
func needLimits(t *testing.T) {
	t.Helper()
	l, err := newLimits(&Orders{Replicas: make([]Replica, 1), CPUs: 1, MemoryBytes: bytesInGB})
	if err != nil {
		t.Skipf("control groups are not permitted: %v; run the tests as root, or where a control group is delegated", err)
	}
	if err := l.remove(); err != nil {
		t.Error(err)
	}
}

// groupsOf lists the groups that a run has now, by controller.
func groupsOf(t *testing.T, keeper int) map[string]string {
	t.Helper()
	p, ok := readProcess(keeper)
	if !ok {
		t.Fatal("the keeper is gone")
	}
	groups := map[string]string{}
	for _, controller := range []string{cpuController, memoryController} {
		for _, h := range ownHierarchies(t, controller) {
			for _, parent := range []string{h.own, filepath.Dir(h.own)} {
				group := filepath.Join(parent, fmt.Sprintf("quartet-%d-%s", keeper, p.start))
				if _, err := os.Stat(group); err == nil {
					groups[controller] = group
				}
			}
		}
	}
	return groups
}

func ownHierarchies(t *testing.T, controllers ...string) []hierarchy {
	t.Helper()
	list, err := findHierarchies(textOf(t, "/proc/self/mountinfo"), textOf(t, "/proc/self/cgroup"), controllers)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func gone(t *testing.T, groups map[string]string) {
	t.Helper()
	for _, group := range groups {
		if _, err := os.Stat(group); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", group, err)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	needLimits(t)
	cases := map[string]struct {
		script string
		want   Exit
	}{
		"within": {"head -c 1000000 /dev/zero | tail > /dev/null", Exit{Outcome: Finished, Codes: []int{0, 0}}},
		"a replica exceeds it": {
			"[ $RANK = 1 ] && exec tail /dev/zero; exec sleep 60",
			Exit{Outcome: Failed, Reason: "replica 1 exceeded its memory limit of 64 MB", Codes: []int{143, 137}, Failed: []int{1}},
		},
		"a child of a replica exceeds it": {
			"[ $RANK = 1 ] && { tail /dev/zero; exit 5; }; exec sleep 60",
			Exit{Outcome: Failed, Reason: "replica 1 exceeded its memory limit of 64 MB", Codes: []int{143, 5}, Failed: []int{1}},
		},
		"a child exceeds it, and the replica does without": {
			"tail /dev/zero; exit 0", Exit{Outcome: Finished, Codes: []int{0, 0}},
		},
		"a replica is killed by others": {
			"[ $RANK = 1 ] && kill -9 $$; exec sleep 60",
			Exit{Outcome: Failed, Reason: "replica 1 exited with 137 (SIGKILL)", Codes: []int{143, 137}, Failed: []int{1}, Killed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, unified, _ := membership(textOf(t, "/proc/self/cgroup"), memoryController); unified && strings.Contains(name, "child") {
				t.Skip("control groups of version 1 are not mounted, and version 2 kills the whole replica; mount -t cgroup -o memory none DIR")
			}
			k := keepRun(t, t.TempDir(), 2, tc.script, Orders{Limits: LimitsRequired, MemoryBytes: 64 * bytesInMB})
			if diff := cmp.Diff(tc.want, k.end(t)); diff != "" {
				t.Errorf("final report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProcessorLimit(t *testing.T) {
	needLimits(t)
	k := keepRun(t, t.TempDir(), 2, "while :; do :; done", Orders{Limits: LimitsRequired, CPUs: 0.05, MemoryBytes: 64 * bytesInMB})
	var group string
	eventually(t, "a replica is slowed down", func() bool {
		group = groupsOf(t, k.keeper.Process.Pid)[cpuController]
		text, _ := os.ReadFile(filepath.Join(group, "1", "cpu.stat")) // it is not there at first
		_, after, found := strings.Cut(string(text), "nr_throttled ")
		return found && !strings.HasPrefix(after, "0\n")
	})
	quota, err := os.ReadFile(filepath.Join(group, "1", "cpu.cfs_quota_us"))
	if err != nil {
		quota, err = os.ReadFile(filepath.Join(group, "1", "cpu.max"))
	}
	if err != nil || !strings.HasPrefix(string(quota), "5000") {
		t.Errorf("quota %q: %v, want 5000 microseconds of each period", quota, err)
	}
	groups := groupsOf(t, k.keeper.Process.Pid)
	if len(groups) != 2 {
		t.Errorf("groups %q, want one for each controller", groups)
	}
	_ = k.keeper.Process.Signal(syscall.SIGTERM) // it runs
	if got := k.end(t); got.Outcome != Stopped || len(got.Warnings) > 0 {
		t.Errorf("final report %+v, want that it was stopped", got)
	}
	gone(t, groups)
}

// A replica is in its groups from its first instant, and the keeper is in none of them.
func TestReplicasBeginInTheirGroups(t *testing.T) {
	needLimits(t)
	k := keepRun(t, t.TempDir(), 3, "cat /proc/self/cgroup; sleep 60 & wait", Orders{Limits: LimitsTry, CPUs: 1, MemoryBytes: 64 * bytesInMB})
	name := filepath.Base(groupsOfStarted(t, k)[memoryController])
	eventually(t, "all replicas run", func() bool {
		for rank := range 3 {
			text, _ := os.ReadFile(filepath.Join(k.dir, fmt.Sprintf("%d.out", rank)))
			if strings.Count(string(text), fmt.Sprintf("/%s/%d\n", name, rank)) != len(ownHierarchies(t, cpuController, memoryController)) {
				return false
			}
		}
		return true
	})
	for _, task := range matches(t, fmt.Sprintf("/proc/%d/task/*/cgroup", k.keeper.Process.Pid)) {
		if text, err := os.ReadFile(task); err == nil && strings.Contains(string(text), name) {
			t.Errorf("a thread of the keeper is in a group of its replicas:\n%s", text)
		}
	}
}

func groupsOfStarted(t *testing.T, k *kept) (groups map[string]string) {
	t.Helper()
	eventually(t, "there are groups", func() bool {
		groups = groupsOf(t, k.keeper.Process.Pid)
		return len(groups) == 2
	})
	return groups
}

func matches(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("nothing is like %s: %v", pattern, err)
	}
	return list
}

// The groups of a keeper that was killed are removed by the next, those of a living one are not.
func TestGroupsOfKilledKeepers(t *testing.T) {
	needLimits(t)
	o := Orders{Limits: LimitsRequired, CPUs: 1, MemoryBytes: 64 * bytesInMB}
	killed, living := keepRun(t, t.TempDir(), 2, "exec sleep 60", o), keepRun(t, t.TempDir(), 1, "exec sleep 60", o)
	left, used := groupsOfStarted(t, killed), groupsOfStarted(t, living)
	if err := killed.keeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.keeper.Wait() // it was killed
	eventually(t, "the groups are removed", func() bool {
		if got := keepRun(t, t.TempDir(), 1, "exit 0", o).end(t); got.Outcome != Finished {
			t.Fatalf("final report %+v", got)
		}
		for _, group := range left {
			if _, err := os.Stat(group); err == nil {
				return false // its replicas are about to end
			}
		}
		return true
	})
	if diff := cmp.Diff(used, groupsOf(t, living.keeper.Process.Pid)); diff != "" {
		t.Errorf("groups of the living (-want +got):\n%s", diff)
	}
	_ = living.keeper.Process.Signal(syscall.SIGTERM)
	living.end(t)
	gone(t, used)
}

// No system has that many processors, and where there are no control groups there is no limit either.
const tooManyCPUs = 1e12

func TestLimitsThatCannotBeSet(t *testing.T) {
	cases := map[string]struct {
		limits string
		want   Exit
		reason string
		warns  string
	}{
		"tried":    {LimitsTry, Exit{Outcome: Finished, Codes: []int{0}}, "", "the replicas have no limits: "},
		"required": {LimitsRequired, Exit{Outcome: Failed, Codes: []int{-1}}, "set the limits: ", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := keepRun(t, t.TempDir(), 1, "exit 0", Orders{Limits: tc.limits, CPUs: tooManyCPUs, MemoryBytes: bytesInGB})
			got := k.end(t)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Exit{}, "Reason", "Warnings")); diff != "" {
				t.Errorf("final report (-want +got):\n%s", diff)
			}
			warns := strings.Join(got.Warnings, "; ")
			if !strings.HasPrefix(got.Reason, tc.reason) || !strings.HasPrefix(warns, tc.warns) || strings.Count(k.read(t, "keeper.log"), warns) != 1 {
				t.Errorf("reason %q and warnings %q, want %q and %q, the latter in the log", got.Reason, warns, tc.reason, tc.warns)
			}
		})
	}
}

// What this system has of version 2 is enough to start a replica in a group of it.
func TestGroupsOfVersion2(t *testing.T) {
	path, unified, _ := membership(textOf(t, "/proc/self/cgroup"), "none")
	own, ok := mounted(textOf(t, "/proc/self/mountinfo"), path, "", true)
	if !unified || !ok {
		t.Skip("control groups of version 2 are not mounted; mount -t cgroup2 none /sys/fs/cgroup")
	}
	name := fmt.Sprintf("quartet-test-%d", os.Getpid())
	l, err := makeGroups([]hierarchy{{unified: true, own: own}}, name, &Orders{Replicas: make([]Replica, 2)})
	if err != nil {
		t.Skipf("control groups are not permitted: %v; run the tests as root, or where a control group is delegated", err)
	}
	var out strings.Builder
	c := exec.Command("cat", "/proc/self/cgroup")
	c.Stdout, c.SysProcAttr = &out, &syscall.SysProcAttr{}
	if err := l.start(c, 1); err != nil {
		t.Error(err)
	} else if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if want := filepath.Join(path, name, "1") + "\n"; !strings.Contains(out.String(), "0::"+want) {
		t.Errorf("groups\n%s want %s", out.String(), want)
	}
	if err := l.remove(); err != nil {
		t.Error(err)
	}
	gone(t, map[string]string{"": filepath.Join(own, name)})
}

func TestVersion2HandsDownControllers(t *testing.T) {
	own := t.TempDir()
	file := filepath.Join(own, "cgroup.subtree_control")
	for _, tc := range []struct{ handed, want string }{{"memory pids cpu\n", "memory pids cpu\n"}, {"cpu\n", "+memory"}} {
		if err := os.WriteFile(file, []byte(tc.handed), 0o600); err != nil {
			t.Fatal(err)
		}
		h := hierarchy{unified: true, controllers: []string{cpuController, memoryController}, own: own}
		if parent, err := h.parent(); parent != own || err != nil {
			t.Errorf("parent %q: %v", parent, err)
		}
		if got := textOf(t, file); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%q became %q, want %q", tc.handed, got, tc.want)
		}
	}
}

func TestLimited(t *testing.T) {
	cases := map[string]struct {
		orders Orders
		want   bool
	}{
		"no":         {Orders{LogBytes: 1, Limits: LimitsRequired}, false},
		"processors": {Orders{CPUs: 0.5}, true},
		"memory":     {Orders{MemoryBytes: 1}, true},
	}
	for name, tc := range cases {
		if got := tc.orders.limited(); got != tc.want {
			t.Errorf("%s: limited %v, want %v", name, got, tc.want)
		}
	}
}

func TestSettings(t *testing.T) {
	o := &Orders{CPUs: 1.5, MemoryBytes: bytesInMB}
	cases := map[string]struct {
		unified    bool
		controller string
		want       []string
	}{
		"processors":            {false, cpuController, []string{"cpu.cfs_period_us=100000", "cpu.cfs_quota_us=150000"}},
		"memory":                {false, memoryController, []string{"memory.limit_in_bytes=1048576", "memory.memsw.limit_in_bytes=1048576"}},
		"processors, version 2": {true, cpuController, []string{"cpu.max=150000 100000"}},
		"memory, version 2":     {true, memoryController, []string{"memory.max=1048576", "memory.swap.max=0", "memory.oom.group=1"}},
	}
	for name, tc := range cases {
		var got []string
		for _, s := range settings(tc.unified, tc.controller, o) {
			got = append(got, s.file+"="+s.value)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

const (
	mountsOfVersion1 = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 master:1 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/me\040mory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	mountsOfVersion2  = "41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsOfContainer = "41 31 0:38 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
)

func TestFindHierarchies(t *testing.T) {
	both := []string{cpuController, memoryController}
	cases := map[string]struct {
		mounts, memberships string
		controllers         []string
		want                []hierarchy
		err                 string
	}{
		"version 1": {
			mountsOfVersion1, "4:memory:/a/b\n1:cpuacct,cpu:/\n0::/c\n", both,
			[]hierarchy{{false, both[:1], "/sys/fs/cgroup/cpu,cpuacct"}, {false, both[1:], "/sys/fs/cgroup/me mory/a/b"}},
			"",
		},
		"version 2":             {mountsOfVersion2, "0::/user.slice/x:y\n", both, []hierarchy{{true, both, "/sys/fs/cgroup/user.slice/x:y"}}, ""},
		"version 1 and 2":       {mountsOfVersion1, "4:memory:/\n0::/c\n", both, []hierarchy{{true, both[:1], "/sys/fs/cgroup/unified/c"}, {false, both[1:], "/sys/fs/cgroup/me mory"}}, ""},
		"container":             {mountsOfContainer, "4:memory:/docker/abc/d\n", both[1:], []hierarchy{{false, both[1:], "/sys/fs/cgroup/memory/d"}}, ""},
		"another's container":   {mountsOfContainer, "4:memory:/docker/abcd\n", both[1:], nil, `control groups for "memory" are not mounted`},
		"outside the namespace": {mountsOfVersion2, "0::/../a\n", both[:1], nil, `control groups for "cpu" are not mounted`},
		"none":                  {"", "", both, nil, `no control groups for "cpu"`},
		"garbage":               {" - \n- - -\n1 2 3 4 5 - cgroup2", "::\n:\n0::\n", both, nil, `control groups for "cpu" are not mounted`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := findHierarchies(tc.mounts, tc.memberships, tc.controllers)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Errorf("hierarchies (-want +got):\n%s", diff)
			}
			if fmt.Sprint(err) == "<nil>" != (tc.err == "") || tc.err != "" && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

// Whatever the system tells, a group is below the folder where its hierarchy is mounted.
func FuzzFindHierarchies(f *testing.F) {
	f.Add("/", "/sys/fs/cgroup", "/a/b")
	f.Add("/docker/abc", "/cg", "/docker/abc/../../..")
	f.Add("/..", "/cg", "/../../x")
	f.Add("", "/0", "/0/0/..000")
	field := func(text string) bool { // of a line of mounts
		return slices.Equal(strings.Fields(text), []string{text}) && !strings.Contains(text, `\`)
	}
	f.Fuzz(func(t *testing.T, root, folder, path string) {
		list, err := findHierarchies(fmt.Sprintf("1 2 0:3 %s %s rw - cgroup2 cgroup2 rw\n", root, folder), "0::"+path+"\n", []string{cpuController})
		if err != nil || !field(root) || !field(folder) || strings.Contains(root, "-") || !filepath.IsAbs(folder) {
			return
		}
		below, err := filepath.Rel(folder, list[0].own)
		if err != nil || !filepath.IsLocal(below) {
			t.Errorf("%q is not below %q", list[0].own, folder)
		}
	})
}

// Whoever asks whether limits are possible is told what a keeper would find, and leaves no group.
func TestCheckLimits(t *testing.T) {
	needLimits(t)
	if err := CheckLimits(); err != nil {
		t.Error(err)
	}
	if left := groupsOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
