package local

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// elasticJob has so many replicas, each of which says that it began and then sleeps.
func elasticJob(least, most int) workload.Job {
	j := shell("j", `echo "$(basename $(dirname $QUARTET_RENDEZVOUS)): $QUARTET_RANK of $QUARTET_REPLICAS on $CUDA_VISIBLE_DEVICES: $$"; exec sleep 600`)
	j.Spec.Requested, j.Spec.MinReplicas, j.Spec.MaxReplicas = most, least, most
	return j
}

// begun waits until every replica of the present run of the first job began, and returns their processes by rank.
func begun(t *testing.T, b *Backend) (pids []int) {
	t.Helper()
	j := b.jobs[0]
	n := len(j.run.Names)
	for rank := range n {
		want := fmt.Sprintf("run-%d: %d of %d on %s: ", j.run.Number, rank, n, j.run.Names[rank])
		for {
			said := lines(t, filepath.Join(b.folder(j), "logs"), strconv.Itoa(rank)+".out")
			if len(said) > 0 && strings.HasPrefix(said[len(said)-1], want) {
				pid, err := strconv.Atoi(strings.TrimPrefix(said[len(said)-1], want))
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return pids
}

// killReplica kills some replicas of the first job, all at once.
func killReplica(ranks ...int) func(t *testing.T, b *Backend) {
	return func(t *testing.T, b *Backend) {
		t.Helper()
		pids := begun(t, b)
		for _, rank := range ranks {
			if err := syscall.Kill(pids[rank], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// across has the first job on all devices of both nodes.
func across() core.Change {
	return core.Change{Action: core.Start, Seats: []core.Seat{{Node: 0, Devices: 3}, {Node: 1, Devices: 3}}}
}

// An elastic job whose replicas are killed continues with the others, if these are enough, on their devices, and that is no failure.
func TestAnElasticJobContinuesWithItsSurvivors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		least   int
		killed  []int
		retries int
		want    core.EventKind
		left    []core.Seat
	}{
		"the last replica":           {1, []int{3}, 0, core.JobShrunk, []core.Seat{{Node: 0, Devices: 3}, {Node: 1, Devices: 1}}},
		"rank 0":                     {1, []int{0}, 0, core.JobShrunk, []core.Seat{{Node: 0, Devices: 2}, {Node: 1, Devices: 3}}},
		"as few as it can do with":   {3, []int{1}, 0, core.JobShrunk, []core.Seat{{Node: 0, Devices: 1}, {Node: 1, Devices: 3}}},
		"too few are left":           {4, []int{1}, 0, core.JobFailed, nil},
		"too few are left, it waits": {4, []int{1}, 1, core.JobInterrupted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := elasticJob(tc.least, 4)
			j.Process.Retries = tc.retries
			b := openedToRetry(t, t.TempDir(), realClock{}, map[string]any{"retry_delay": "1h", "retry_delay_max": "4h"}, commands(j))
			seen(t, b)
			apply(t, b, across())
			killReplica(tc.killed...)(t, b)
			e, now := ends(t, b)
			if e.Kind != tc.want {
				t.Fatalf("%+v, want %v", e, tc.want)
			}
			if tc.want != core.JobShrunk {
				return
			}
			if diff := cmp.Diff(tc.left, e.Seats); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			if e.Cause != core.CauseKilled || e.NotBeforeSeconds < now+3000 || !strings.Contains(e.Message, fmt.Sprintf("continues with %d of 4", core.Replicas(tc.left))) {
				t.Errorf("%+v", e)
			}
			apply(t, b)
			mine := b.jobs[0]
			for !mine.live() || mine.run.Number < 2 {
				if err := b.look(b.elapsed()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			if got := len(begun(t, b)); got != core.Replicas(tc.left) || mine.run.Failures != 0 {
				t.Errorf("%d replicas, %d failures; want %d and 0", got, mine.run.Failures, core.Replicas(tc.left))
			}
		})
	}
}

// Two replicas that are killed at once are both lost.
func TestTwoReplicasAreKilledAtOnce(t *testing.T) {
	t.Parallel()
	j := shell("j", `[ "$QUARTET_RANK" = 3 ] || trap '' TERM; echo "$(basename $(dirname $QUARTET_RENDEZVOUS)): $QUARTET_RANK of $QUARTET_REPLICAS on $CUDA_VISIBLE_DEVICES: $$"; while :; do sleep 0.01; done`)
	j.Spec.Requested, j.Spec.MinReplicas, j.Spec.MaxReplicas = 4, 1, 4
	b := openedToRetry(t, t.TempDir(), realClock{}, map[string]any{"grace": "2m"}, commands(j))
	seen(t, b)
	apply(t, b, across())
	killReplica(1, 2, 0)(t, b)
	e, _ := ends(t, b)
	if want := []core.Seat{{Node: 1, Devices: 2}}; e.Kind != core.JobShrunk || !core.SameSeats(e.Seats, want) {
		t.Errorf("%+v, want it to continue on %v", e, want)
	}
}

// A job that was given as many replicas as before at once does not continue with fewer the next time: what it loses then counts.
func TestAJobThatIsGivenAllAgainFails(t *testing.T) {
	t.Parallel()
	b := openedToRetry(t, t.TempDir(), realClock{}, map[string]any{"retry_delay": "1h"}, commands(elasticJob(1, 4)))
	seen(t, b)
	apply(t, b, across())
	killReplica(2)(t, b)
	if e, _ := ends(t, b); e.Kind != core.JobShrunk {
		t.Fatalf("%+v", e)
	}
	all := across()
	all.Action = core.Move
	apply(t, b, all)
	killReplica(2)(t, b)
	if e, _ := ends(t, b); e.Kind != core.JobFailed {
		t.Errorf("%+v, want it to fail", e)
	}
}

// A scheduler that takes over after replicas were killed, before or after that was recorded, has the job continue with the others.
func TestATakeoverKeepsSurvivors(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"before it is recorded": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			settings := func() map[string]any { return map[string]any{"retry_delay": "1h", "retry_delay_max": "4h"} }
			first := openedToRetry(t, dir, realClock{}, settings(), commands(elasticJob(2, 4)))
			seen(t, first)
			apply(t, first, across())
			killReplica(0)(t, first)
			if e, _ := ends(t, first); e.Kind != core.JobShrunk {
				t.Fatalf("%+v", e)
			}
			if recorded {
				apply(t, first)
			}
			if _, err := first.Leave(); err != nil {
				t.Fatal(err)
			}
			second := openedToRetry(t, dir, realClock{}, settings(), commands(elasticJob(2, 4)))
			if diff := cmp.Diff([]string{"job_submitted j"}, seen(t, second)); diff != "" {
				t.Fatal(diff)
			}
			apply(t, second, across())
			if e, _ := ends(t, second); e.Kind != core.JobShrunk || core.Replicas(e.Seats) != 3 {
				t.Fatalf("%+v, want the job to continue with 3 replicas", e)
			}
			apply(t, second)
			mine := second.jobs[0]
			for !mine.live() || !mine.wanted() {
				if err := second.look(second.elapsed()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			if got := len(begun(t, second)); got != 3 || mine.run.Number != 2 || mine.run.Failures != 0 || mine.run.Shrunk != 1 {
				t.Errorf("%d replicas of %+v", got, mine.run)
			}
		})
	}
}
