package keeper

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/agent"
)

// processesOf counts the keepers and the others of each run.
func processesOf(folder string) map[string][2]int {
	count := map[string][2]int{}
	for _, p := range Find(folder) {
		n := count[filepath.Base(p.Run)]
		if p.Keeper {
			n[0]++
		} else {
			n[1]++
		}
		count[filepath.Base(p.Run)] = n
	}
	return count
}

func TestStraysAreEnded(t *testing.T) {
	root := t.TempDir()
	runs := map[string]*kept{}
	for _, name := range []string{"run-1", "run-10", "run-2"} { // the first is no part of the second
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		runs[name] = keepRun(t, dir, 2, "exec env "+agent.RendezvousVariable+"=$PWD/peers sleep 60", Orders{})
	}
	is := func(folder string, want map[string][2]int) {
		t.Helper()
		eventually(t, "processes are as they should be", func() bool { return cmp.Equal(want, processesOf(folder)) })
	}
	is(root, map[string][2]int{"run-1": {1, 2}, "run-10": {1, 2}, "run-2": {1, 2}})
	is(filepath.Join(root, "run-1"), map[string][2]int{"run-1": {1, 2}})

	EndStrays(filepath.Join(root, "run-1"), nil)
	_ = runs["run-1"].keeper.Wait() // it was killed
	is(root, map[string][2]int{"run-10": {1, 2}, "run-2": {1, 2}})

	EndStrays(root, func(id Identity) bool { return id.PID == runs["run-2"].keeper.Process.Pid })
	if diff := cmp.Diff(map[string][2]int{"run-2": {1, 2}}, processesOf(root)); diff != "" {
		t.Errorf("processes of runs (-want +got):\n%s", diff)
	}
}

// Between its fork and its program a replica has the environment of its keeper, and is spared with it.
func TestAReplicaThatIsBeingStartedIsNoStray(t *testing.T) {
	dir := t.TempDir()
	k := keepRun(t, dir, 1, "exec sleep 60", Orders{})
	forked := exec.Command("sleep", "60")
	forked.Env = append(os.Environ(), Variable+"="+dir)
	if err := forked.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = forked.Process.Kill()
		_ = forked.Wait() // it was killed
	}()
	EndStrays(dir, func(id Identity) bool { return id.PID == k.keeper.Process.Pid })
	if _, alive := identify(forked.Process.Pid); !alive {
		t.Error("the process was killed as a stray")
	}
	EndStrays(dir, nil)
	_ = k.keeper.Wait() // it was killed
}

// A keeper that is not told to begin starts nothing and says nothing.
func TestKeeperIsDismissed(t *testing.T) {
	dir := t.TempDir()
	c, err := Start(dir, &Orders{Command: []string{"/bin/true"}, Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Alive() {
		t.Error("it does not wait")
	}
	c.Dismiss()
	if e, _, err := FinalReport(dir); !os.IsNotExist(err) || c.Alive() {
		t.Errorf("final report %+v, error %v, alive %v, want that it is gone without one", e, err, c.Alive())
	}
}
