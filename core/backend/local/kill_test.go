package local

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// ownersVariable tells a replica how many jobs may be on its device.
const ownersVariable = "OWNERS"

func ignoreTermination() { signal.Ignore(syscall.SIGTERM) }

// TestSchedulerIsKilled kills schedulers at random moments, one after the other, each of which has to go on where the one
// before was. Every job must end, having done its work once, on devices of its own, and leave nothing behind.
func TestSchedulerIsKilled(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d, %d kills", *seed, *kills)
	rng := rand.New(rand.NewPCG(*seed, 0))
	for left, life := *kills, 0; left > 0; life++ {
		policy := [...]string{patient, preempting, unhurried}[life%3]
		left -= killInOneLife(t, rng, policy, min(left, mostInOneLife), life)
	}
	t.Logf("stores refused: %v", refusals)
}

// TestSchedulerOfPoolsIsKilled is TestSchedulerIsKilled with nodes that come, go and are taken away.
func TestSchedulerOfPoolsIsKilled(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d, %d kills", *seed, *kills)
	rng := rand.New(rand.NewPCG(*seed, 1))
	for left, life := *kills, 0; left > 0; life++ {
		left -= killInOneLife(t, rng, pooling, min(left, mostInOneLife), life)
	}
}

// TestSchedulerOfSharedDevicesIsKilled is TestSchedulerIsKilled with jobs that have parts of devices: together they never have more than all of one.
func TestSchedulerOfSharedDevicesIsKilled(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d, %d kills", *seed, *kills)
	rng := rand.New(rand.NewPCG(*seed, 2))
	for left, life := *kills, 0; left > 0; life++ {
		left -= killInOneLife(t, rng, [...]string{sharing, turning, contending}[life%3], min(left, mostInOneLife), life)
	}
}

// mostInOneLife leaves time for the jobs of every life to end.
const mostInOneLife = 4

// killInOneLife returns how often a scheduler was killed before the jobs were done.
func killInOneLife(t *testing.T, rng *rand.Rand, policy string, most, life int) (killed int) {
	root := t.TempDir()
	ledger, dir := filepath.Join(root, "ledger"), filepath.Join(root, "live")
	if err := os.Mkdir(ledger, 0o700); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("version: 1\njobs:\n")
	replicas := map[string]int{}
	for i := range 10 {
		name, kind := fmt.Sprintf("job-%d", i), "plain"
		switch {
		case i == 3:
			kind = "fail once"
		case i == 5:
			kind = "deaf"
		case i == 7:
			kind = "fork"
		}
		replicas[name] = 1 + rng.IntN(3)
		part := ""
		if policy == sharing || policy == contending {
			part = [...]string{"", ", share_milli: 0", ", share_milli: 1", ", share_milli: 333", ", share_milli: 334", ", share_milli: 500, cpus: 1", ", share_milli: 999", ", share_milli: 1000"}[rng.IntN(8)]
		}
		if policy == turning {
			part = ", environment: [{name: " + ownersVariable + ", value: \"2\"}]"
		}
		fmt.Fprintf(&text, "  - {name: %s, command: [%q, work, %q, %s, %q], replicas: %d, retries: 9, submit: %dms%s}\n",
			name, testProgram(t), ledger, kind, fmt.Sprint(20+rng.IntN(100)), replicas[name], rng.IntN(300), part)
	}
	file := filepath.Join(root, "jobs.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var restore func(said string) bool // while the store is damaged
	for ended, lives := false, 0; !ended; lives++ {
		if lives > 0 && restore == nil && rng.IntN(2) == 0 {
			restore = damage(t, rng, dir)
		}
		var said bytes.Buffer
		c := exec.Command(testProgram(t), "schedule", policy, dir, file)
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		limit := time.Minute
		if killed < most {
			limit = time.Duration(rng.IntN(150_000)) * time.Microsecond
		}
		select {
		case err := <-done:
			if restore != nil && restore(said.String()) {
				restore = nil
				continue
			}
			if ended = true; err != nil {
				t.Fatalf("life %d after %d kills: %v\n%s", life, killed, err, said.String())
			}
		case <-time.After(limit):
			if killed == most {
				t.Fatalf("life %d after %d kills: the jobs do not end\n%s", life, killed, said.String())
			}
			killed++
			_ = c.Process.Kill()
			ended = <-done == nil                         // faster than the signal
			if restore != nil && restore(said.String()) { // it had refused already
				restore, ended = nil, false
			}
		}
	}
	if wrong := lines(t, ledger, "violations"); len(wrong) > 0 {
		t.Errorf("life %d: run twice at once: %q", life, wrong)
	}
	done := map[string]int{}
	for _, replica := range lines(t, ledger, "done") {
		done[replica]++
	}
	for name, n := range replicas {
		for rank := range n {
			replica := fmt.Sprintf("%s-%d", name, rank)
			stopped := policy == preempting || policy == contending || policy == pooling || name == "job-3" // one that is stopped, or whose neighbour fails, may just have ended
			if got := done[replica]; got < 1 || got > 1 && !stopped {
				t.Errorf("life %d: replica %s did its work %d times, want once", life, replica, got)
			}
		}
	}
	for _, p := range keeper.Find(root) {
		t.Errorf("life %d: process %d of %s is left; a keeper: %v", life, p.PID, p.Run, p.Keeper)
	}
	return killed
}

func lines(t *testing.T, ledger, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ledger, file))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func testProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damage damages the store of a scheduler that was killed. The function that it returns is told what the next scheduler said: it
// reports whether that refused the store, which is then put back, and complains of anything that is gone.
func damage(t *testing.T, rng *rand.Rand, dir string) (restore func(said string) bool) {
	t.Helper()
	path := filepath.Join(dir, storeFile)
	whole, err := os.ReadFile(path)
	if err != nil || len(whole) == 0 || !strings.Contains(string(whole), "Schema") {
		return nil // it was killed before it recorded its run
	}
	kind := [...]string{"truncated", "empty", "missing", "bit flipped"}[rng.IntN(4)]
	broken := append([]byte{}, whole...)
	switch kind {
	case "truncated":
		broken = broken[:rng.IntN(len(broken))]
	case "empty":
		broken = nil
	case "bit flipped":
		at := rng.IntN(len(broken))
		for broken[at] == 0 { // most of a small store is empty
			at = rng.IntN(len(broken))
		}
		broken[at] ^= 1 << rng.IntN(8)
	}
	if kind == "missing" {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, broken, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	kept, running := outputs(t, dir), keeper.Find(dir)
	return func(said string) bool {
		after := outputs(t, dir)
		for _, file := range kept {
			if !slices.Contains(after, file) {
				t.Errorf("a store that is %s: %s was removed", kind, file)
			}
		}
		if !strings.Contains(said, storeFile) {
			if said != "" && (kind == "empty" || kind == "missing") && len(kept)+len(running) > 0 {
				t.Errorf("a store that is %s is not refused: %s", kind, said)
			}
			return false
		}
		for _, p := range running {
			alive := p.Alive() // before its report is looked for: it may end in between
			if _, _, err := keeper.FinalReport(p.Run); p.Keeper && !alive && err != nil && keeper.Began(p.Run) {
				t.Errorf("a store that is %s: the keeper of %s was killed", kind, p.Run)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		refusals[kind]++
		return true
	}
}

// refusals counts the stores that were refused, by what was wrong with them.
var refusals = map[string]int{}

// outputs are the logs and the checkpoints of all jobs.
func outputs(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, kind := range []string{"logs", "checkpoint"} {
		found, err := filepath.Glob(filepath.Join(dir, "jobs", "*", kind, "*"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return list
}
