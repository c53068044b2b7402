package gang_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// script is what happens to two jobs, one decision after the other. They take turns on devices, so that each decision has
// members that wait for those of another job.
func script(a, b *gang.Job) []func() {
	return []func(){
		func() { decide(a, true, seat(0, 0, 1), seat(1, 0, 1)) },
		func() { decide(b, true, seat(0, 2, 3)) },
		func() { decide(a, false, seat(0, 0, 1), seat(1, 0, 1), seat(2, 0)) }, // it grows
		func() {
			decide(a, false, seat(0, 0, 1), seat(2, 0), seat(2, 1)) // a member moves
			decide(b, true, seat(0, 2, 3), seat(1, 0, 1, 2))        // to where the other one was
		},
		func() {
			decide(a, true, seat(0, 2, 3)) // they change places
			decide(b, true, seat(0, 0, 1))
		},
		func() { decide(b, false) },
		func() { decide(a, false) },
	}
}

// A client that is cut at any of its calls, before or after it took effect or much later, leaves what one that was not cut does,
// whether it dies of it or goes on. At no time has a device two processes.
func TestCut(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := cutAt(t, way, 0, "", false)
			t.Logf("%d calls", calls)
			for _, how := range cuts {
				for _, dies := range []bool{false, true} {
					for n := 1; n <= calls; n++ {
						if cutAt(t, way, n, how, dies) == 0 {
							t.Fatalf("call %d, cut %s, dies %v", n, how, dies)
						}
					}
				}
			}
		})
	}
}

// cutAt plays the script with a client that is cut at a call, and returns how many calls there were; 0 when it failed.
func cutAt(t *testing.T, w way, n int, how string, dies bool) (calls int) {
	r := newRig(t, 3, 4, w.Options)
	jobs := r.newJobs(w, "a", "b")
	a, b := jobs[0], jobs[1]
	total := 0
	for i, next := range script(a, b) {
		next()
		if n > total {
			r.client.cutAt, r.client.how, r.client.dies = n-total+r.client.count, how, dies
		}
		before := r.client.count
		for range 12 {
			for _, job := range []*gang.Job{a, b} {
				_, err := r.drive(job)
				if err != nil && !errors.Is(err, gang.ErrAgain) {
					t.Errorf("decision %d: %v", i, err)
					return 0
				}
				if r.client.dead {
					total += r.client.count - before
					r.restart()
					before = 0
				}
			}
			r.tick()
		}
		total += r.client.count - before
		failed := &firstProblem{}
		r.settle(failed, a, b)
		r.holds(failed, a)
		r.holds(failed, b)
		r.must(failed)
		if failed.text != "" {
			t.Errorf("decision %d: %s", i, failed.text)
			return 0
		}
	}
	return total
}

// firstProblem keeps what is wrong first.
type firstProblem struct{ text string }

func (f *firstProblem) Fatalf(format string, args ...any) {
	if f.text == "" {
		f.text = fmt.Sprintf(format, args...)
	}
}

// Many jobs are driven at the same time, with looks that come in any order among them, while they take turns on few devices.
func TestAtTheSameTime(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, 4, way.Options)
			r.driver.Workers = 3
			jobs := r.newJobs(way, "job-0", "job-1", "job-2", "job-3", "job-4", "job-5")
			for turn := range 6 {
				for i, job := range jobs {
					switch (i + turn) % 3 { // two have devices: all of them on two nodes, some on each
					case 0:
						decide(job, i%2 == 0, seat(0, i/3*2, i/3*2+1), seat(1, i/3*2, i/3*2+1))
					case 1:
						decide(job, false)
					}
				}
				// Those whose turn ends are told so only now: the others wait for them.
				for i, job := range jobs {
					if (i+turn)%3 == 2 {
						decide(job, false)
					}
				}
				var group sync.WaitGroup
				for _, job := range jobs {
					group.Go(func() {
						for range 20 {
							if _, err := r.drive(job); err != nil && !errors.Is(err, gang.ErrAgain) {
								t.Error(err)
							}
							r.tick()
						}
					})
				}
				group.Wait()
				r.settle(t, jobs...)
				for _, job := range jobs {
					r.holds(t, job)
				}
				r.must(t)
			}
		})
	}
}

// Pods that ended by themselves stay for their logs where that is asked for, without devices, and pods that were stopped go.
func TestKeep(t *testing.T) {
	r := newRig(t, 2, 4, gang.Options{})
	job := newJob("a")
	job.Keep = true
	decide(job, true, seat(0, 0), seat(1, 0))
	r.settle(t, job)
	r.end(r.at("node-0"), 0, "")
	if state := r.settle(t, job)[0]; state.Phase != gang.Running {
		t.Errorf("state %+v: one that is done does not break a gang", state)
	}
	decide(job, false)
	if state := r.settle(t, job)[0]; state.Phase != gang.Gone || state.Leaving > 0 {
		t.Errorf("state %+v", state)
	}
	if pod := r.at("node-0"); len(r.pods) != 1 || len(pod.Finalizers) > 0 || pod.DeletionTimestamp != nil {
		t.Errorf("pods %q", r.summary())
	}
	writes := r.calls["DELETE pods"]
	if r.settle(t, job); r.calls["DELETE pods"] != writes {
		t.Error("it is deleted after all")
	}
}

// The pods of a job that ended well, or not, say so.
func TestEnds(t *testing.T) {
	for want, codes := range map[gang.Phase][2]int32{gang.Completed: {0, 0}, gang.Failed: {0, 2}} {
		r := newRig(t, 2, 4, gang.Options{})
		job := newJob("a")
		decide(job, true, seat(0, 0), seat(1, 0))
		r.settle(t, job)
		r.end(r.at("node-0"), codes[0], "")
		r.end(r.at("node-1"), codes[1], "")
		if state := r.settle(t, job)[0]; state.Phase != want {
			t.Errorf("exit codes %v: %+v, want %s", codes, state, want)
		}
	}
}

// A pod that ended since it was seen is not taken for one that was told to end: who has it stopped learns of it, and the pod stays.
func TestEndsBeforeItIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		code   int32
		behind int
		want   gang.Phase
	}{
		"seen":                      {0, 0, gang.Completed},
		"not seen yet":              {0, 1, gang.Completed},
		"it failed":                 {1, 0, gang.Failed},
		"it failed, not seen yet":   {1, 1, gang.Failed},
		"it is told while it works": {-1, 0, ""},
	} {
		for again, next := range map[string][]gang.Seat{"it is stopped": nil, "it is moved": {seat(1, 0)}} {
			t.Run(name+", "+again, func(t *testing.T) {
				r := newRig(t, 2, 4, gang.Options{})
				job := newJob("a")
				decide(job, true, seat(0, 0))
				r.settle(t, job)
				pod := r.at("node-0")
				if tc.code >= 0 {
					r.end(pod, tc.code, "")
				}
				job.Past = gang.Past{Run: job.Run, Pods: 1}
				decide(job, next != nil, next...)
				state, err := r.driver.Drive(t.Context(), *job, r.look(tc.behind))
				if err != nil {
					t.Fatal(err)
				}
				if state.Past.Phase != tc.want {
					t.Errorf("it ended as %q, want %q", state.Past.Phase, tc.want)
				}
				r.settle(t, job)
				if now := r.at("node-0"); tc.want != "" && (now == nil || now.UID != pod.UID) {
					t.Errorf("the pod that ended by itself is gone: %v", r.summary())
				}
				if began := r.at("node-1") != nil; began != (next != nil && tc.want == "") {
					t.Errorf("it began again: %v", began)
				}
			})
		}
	}
}
