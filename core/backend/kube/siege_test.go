//go:build linux

package kube

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

var (
	kills   = flag.Int("kube.kills", 3, "how often TestLeadersAreKilled kills a leader")
	seed    = flag.Uint64("kube.seed", 1, "seed of what tests do at random")
	claims  = flag.Bool("kube.claims", false, "give devices by claims in TestLeadersAreKilled")
	program = flag.String("kube.program", "", "the program quartet, to be killed instead of the one of the test; several versions of it, with commas between, take over from each other")
)

// crowd is jobs that come and go: some end, some fail, some are deleted by their owner, some are suspended and resumed.
type crowd struct {
	rig     *rig
	history *history
	rand    *rand.Rand
	most    int // replicas
	there   int // jobs at a time

	moves atomic.Int64 // how often jobs may have been moved by what befell nodes

	count int
	live  map[string]*fate // jobs whose end is not checked
	ended map[trainingjob.State]int
}

// fate is what is to become of a job.
type fate struct {
	uid      types.UID
	want     trainingjob.State // empty for one that is deleted
	runs     int64             // at most
	deleteAt time.Time
	pauseAt  time.Time
	resumeAt time.Time
}

// step submits a job if few are there, does to the others what is due, and looks how they ended.
func (c *crowd) step(more bool) {
	now := realClock{}.Now()
	if more && len(c.live) < c.there {
		c.submit(now)
	}
	jobs := c.rig.admin.jobs.Of(c.rig.namespace)
	for name, f := range c.live {
		told := c.history.stateOf(f.uid)
		switch {
		case told.gone:
			if f.want != "" {
				c.rig.Errorf("job %s is gone, and was %s", name, told.state)
			}
			c.ended["deleted"]++
			delete(c.live, name)
		case told.state.Ended() && f.want == "": // it ended before somebody deleted it
			f.deleteAt = now.Add(-time.Second)
		case told.state.Ended():
			if told.state != f.want || told.run > f.runs+c.moves.Load() {
				c.rig.Errorf("job %s is %s in run %d, want %s in run %d:\n%s", name, told.state, told.run, f.want, f.runs, strings.Join(told.said, "\n"))
			}
			c.ended[told.state]++
			delete(c.live, name)
			if c.rand.IntN(4) > 0 { // some stay until the end
				c.remove(name)
			}
			continue
		}
		if !f.deleteAt.IsZero() && now.After(f.deleteAt) {
			f.deleteAt = time.Time{}
			c.remove(name)
		}
		for _, turn := range [...]struct {
			at      *time.Time
			suspend bool
		}{{&f.pauseAt, true}, {&f.resumeAt, false}} {
			if turn.at.IsZero() || now.Before(*turn.at) {
				continue
			}
			*turn.at = time.Time{}
			patch := fmt.Appendf(nil, `{"spec":{"suspend":%v}}`, turn.suspend)
			if _, err := jobs.Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				c.rig.Errorf("edit %s: %v", name, err)
			}
		}
	}
}

func (c *crowd) remove(name string) {
	how := metav1.DeletePropagationBackground
	if err := c.rig.admin.jobs.Of(c.rig.namespace).Delete(context.Background(), name, metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		c.rig.Errorf("delete %s: %v", name, err)
	}
}

func (c *crowd) submit(now time.Time) {
	length := time.Duration(500+c.rand.IntN(6000)) * time.Millisecond
	within := func() time.Time { return now.Add(time.Duration(c.rand.Int64N(int64(8 * time.Second)))) }
	a := asked{replicas: 1 + c.rand.IntN(c.most), annotations: map[string]string{
		"quartet.sched/start": (time.Duration(c.rand.IntN(800)) * time.Millisecond).String(),
		"quartet.sched/stop":  (time.Duration(c.rand.IntN(800)) * time.Millisecond).String(),
	}}
	f := &fate{runs: 1}
	kind := [...]string{"runs", "runs", "runs", "fails", "deleted", "paused"}[c.rand.IntN(6)]
	switch kind {
	case "runs":
		a.run, f.want = length, trainingjob.Completed
	case "fails":
		a.fail, f.want = length, trainingjob.Failed
	case "deleted":
		f.deleteAt = within()
	case "paused":
		a.run, f.want, f.runs = length, trainingjob.Completed, 2
		f.pauseAt = within()
		f.resumeAt = f.pauseAt.Add(2 * time.Second)
	}
	c.count++
	name := fmt.Sprintf("%s-%d", kind, c.count)
	job := c.rig.submit(name, a)
	if job == nil {
		return
	}
	f.uid = job.UID
	c.live[name] = f
}

// fill steps until told to stop, and returns what does that.
func (c *crowd) fill() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			c.step(true)
			time.Sleep(5 * look)
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}

// enlarge adds nodes of so many devices, and returns how many each node of the rig has.
func (r *rig) enlarge(nodes, devices int) (capacity map[string]int) {
	r.Helper()
	capacity = map[string]int{r.node("a"): 2, r.node("b"): 2}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		r.addNode(name, devices)
		capacity[r.node(name)] = devices
	}
	return capacity
}

// TestLeadersAreKilled kills the process that leads at random moments, again and again, while jobs come and go and another stands
// by. By the API's own history no job is lost or runs twice, no device is held twice, and in the end nothing is left over.
//
// Beside that, nodes are cordoned, tainted, deleted and started anew in the same second.
func TestLeadersAreKilled(t *testing.T) {
	t.Logf("seed %d, %d kills", *seed, *kills)
	r := newRigOf(t, shared(t), *claims)
	const devices = 4
	h := r.record(r.enlarge(6, devices))
	random := rand.New(rand.NewPCG(*seed, 0))
	c := &crowd{
		rig: r, history: h, rand: rand.New(rand.NewPCG(*seed, 1)), most: 2 * devices, there: 24, live: map[string]*fate{}, ended: map[trainingjob.State]int{},
	}
	leader := r.spawn("fifo")
	r.awaitLead(leader)
	standby := r.spawn("fifo")
	stop := c.fill()
	unwell := &trouble{rig: r, history: h, rand: rand.New(rand.NewPCG(*seed, 2)), crowd: c, devices: devices}
	for i := range 6 {
		unwell.nodes = append(unwell.nodes, fmt.Sprintf("n%d", i))
	}
	var away []time.Duration
	for range *kills {
		pause := time.Duration(random.IntN(3000)) * time.Millisecond
		if random.IntN(3) == 0 {
			pause = time.Duration(random.IntN(150)) * time.Millisecond // as it takes over
		}
		time.Sleep(pause)
		r.alive(leader)
		r.alive(standby)
		at := realClock{}.Now()
		unwell.befall()
		leader.kill()
		unwell.befall()
		r.awaitLead(standby)
		r.await("the history knows who leads", func() bool {
			next, ok := h.after(at)
			if ok {
				away = append(away, next.at.Sub(at))
			}
			return ok
		})
		leader, standby = standby, r.spawn("fifo")
	}
	stop()
	unwell.over()
	r.drain(c)
	h.verdict()
	slices.Sort(away)
	t.Logf("%d jobs: %v; %d events, %d leaders; a part of a gang was bound for %v at most", c.count, c.ended, h.events, len(h.leaders), h.longestGap)
	t.Logf("from a kill to the next leader: median %v, most %v", away[len(away)/2], away[len(away)-1])
	// Nobody may take over before the lease ends, and who stands by asks again within lease/6: 7 s in all. That is of the median: a
	// machine that does much else wakes processes late.
	const within, never = lead.DefaultLease + lead.DefaultLease/6, 5 * lead.DefaultLease / 2
	if median, worst := away[len(away)/2], away[len(away)-1]; median > within || worst > never {
		t.Errorf("from a kill to the next leader it took %v: median %v, want %v; most %v, want %v", away, median, within, worst, never)
	}
}

// TestTakeoverByAnother kills the leader, and another program takes over: one of another composition, and back. No job is lost, and
// none is started again but for a decision of the policy.
func TestTakeoverByAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, shared(t))
	r.addNode("c", 4)
	h := r.record(map[string]int{r.node("a"): 2, r.node("b"): 2, r.node("c"): 4})
	var jobs []*trainingjob.TrainingJob
	for i := range 4 {
		jobs = append(jobs, r.submit(fmt.Sprintf("holds-%d", i), asked{replicas: 1 + i%2}))
	}
	const ends = 18 // 1 of 2 devices at a time is free for them
	for i := range ends {
		jobs = append(jobs, r.submit(fmt.Sprintf("ends-%d", i), asked{replicas: 1 + i%2, run: time.Second}))
	}
	leader := r.spawn("fifo")
	r.awaitLead(leader)
	for i, policy := range [...]string{"las", "fifo", "las"} {
		r.await("some have ended", func() bool {
			count := 0
			for _, j := range jobs {
				if h.stateOf(j.UID).state == trainingjob.Completed {
					count++
				}
			}
			return count > ends*i/3
		})
		r.alive(leader)
		next := r.spawn(policy)
		leader.kill()
		r.awaitLead(next)
		leader = next
	}
	for _, j := range jobs {
		want := trainingjob.Completed
		if strings.HasPrefix(j.Name, "holds") {
			want = trainingjob.Running
		}
		var told story
		r.await("job "+j.Name+" is "+string(want), func() bool {
			told = h.stateOf(j.UID)
			return told.state == want
		})
		decided := int64(0)
		for _, line := range told.said {
			if strings.Contains(line, "stop true by allocation/") {
				decided++
			}
		}
		if told.run > 1+decided {
			t.Errorf("job %s is in run %d, and was stopped %d times by a policy:\n%s", j.Name, told.run, decided, strings.Join(told.said, "\n"))
		}
	}
	h.verdict()
}

// drain waits until all jobs have ended as they were to, and looks for what is left over: first while the jobs are there, then
// without them.
func (r *rig) drain(c *crowd) {
	r.Helper()
	for range patience {
		if c.step(false); len(c.live) == 0 {
			break
		}
		time.Sleep(look)
	}
	for name, f := range c.live {
		r.Errorf("job %s never ends:\n%s", name, strings.Join(c.history.stateOf(f.uid).said, "\n"))
	}
	if len(c.live) > 0 {
		for _, p := range r.pods() {
			r.Log(describe(&p))
		}
		r.FailNow()
	}
	r.quiet()
	list, err := r.admin.jobs.Of(r.namespace).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	owners := map[types.UID]bool{}
	for i := range list.Items {
		owners[list.Items[i].UID] = true
	}
	orphan := func() string {
		for _, p := range r.pods() {
			if owner := metav1.GetControllerOfNoCopy(&p); owner == nil || !owners[owner.UID] {
				return p.Name
			}
		}
		return ""
	}
	r.await("pods whose job is gone go, too", func() bool { return orphan() == "" })
	for i := range list.Items {
		c.remove(list.Items[i].Name)
	}
	var left []string
	for range patience {
		left = nil
		for _, p := range r.pods() {
			left = append(left, describe(&p))
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(look)
	}
	r.Errorf("pods are left over: %s", strings.Join(left, "; "))
}

func describe(p *corev1.Pod) string {
	var ended []string
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			ended = append(ended, t.FinishedAt.UTC().Format(time.TimeOnly))
		}
	}
	return fmt.Sprintf("%s %s on %q, deleted %v, ended %v, finalizers %v, job %s",
		p.Name, p.Status.Phase, p.Spec.NodeName, p.DeletionTimestamp, ended, p.Finalizers, p.Labels[gang.JobLabel])
}

// trouble is what befalls nodes.
type trouble struct {
	rig     *rig
	history *history
	rand    *rand.Rand
	crowd   *crowd
	nodes   []string
	devices int
	undo    []func()
	count   int
}

// befall ends the trouble of before, now and then, and has something happen to a node.
func (t *trouble) befall() {
	if len(t.undo) > 2 {
		t.undo[0]()
		t.undo = t.undo[1:]
	}
	which := t.rand.IntN(len(t.nodes))
	name, free := t.nodes[which], `{"spec":{"unschedulable":null,"taints":null}}`
	t.count++
	switch t.rand.IntN(6) {
	case 0:
		t.rig.patchNode(name, `{"spec":{"unschedulable":true}}`)
	case 1:
		t.rig.patchNode(name, `{"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]}}`)
	case 2:
		t.crowd.moves.Add(1)
		t.rig.patchNode(name, `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`)
	case 3:
		t.rig.patchNode(name, fmt.Sprintf(`{"status":{"allocatable":{%q:"0"}}}`, gang.DefaultResource), "status")
		full := fmt.Sprintf(`{"status":{"allocatable":{%q:"%d"}}}`, gang.DefaultResource, t.devices)
		t.undo = append(t.undo, func() {
			if slices.Contains(t.nodes, name) {
				t.rig.patchNode(name, full, "status")
			}
		})
		return
	case 4:
		t.crowd.moves.Add(1)
		next := fmt.Sprintf("m%d", t.count)
		t.nodes[which] = next
		t.history.grow(t.rig.node(next), t.devices)
		t.rig.addNode(next, t.devices)
		t.history.leave(t.rig.node(name))
		if err := t.rig.admin.Nodes().Delete(context.Background(), t.rig.node(name), metav1.DeleteOptions{}); err != nil {
			t.rig.Errorf("delete the node %s: %v", name, err)
		}
		return
	default:
		return
	}
	t.undo = append(t.undo, func() {
		if slices.Contains(t.nodes, name) {
			t.rig.patchNode(name, free)
		}
	})
}

// over ends all trouble.
func (t *trouble) over() {
	for _, undo := range t.undo {
		undo()
	}
	t.undo = nil
}
