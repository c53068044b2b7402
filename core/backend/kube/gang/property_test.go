package gang_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// machine lets everything happen in any order.
type machine struct {
	*rig
	jobs []*gang.Job
	old  *leader
}

// leader is one that was replaced and does not know it.
type leader struct {
	driver *gang.Driver
	look   gang.Look
	jobs   []gang.Job
	slips  int // writes that it makes before it notices
}

var errFenced = errors.New("somebody else leads")

// Whatever is decided, in whatever order calls, looks, cuts, kubelets and faults come, with an old leader that still makes one
// write: no device has two processes at any time, no name is bound twice, and in the end the pods are those of the decision.
func TestAnyOrder(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(p *rapid.T) {
				m := &machine{rig: newRig(t, 3, 4, way.Options)}
				m.jobs = m.newJobs(way, "a", "b", "c")
				p.Repeat(map[string]func(*rapid.T){
					"":         func(p *rapid.T) { m.must(p) },
					"decide":   m.decide,
					"drive":    m.driveOne,
					"drive 2":  m.driveOne, // twice as often
					"tick":     func(*rapid.T) { m.tick() },
					"fault":    m.fault,
					"mend":     m.mend,
					"takeover": m.takeover,
					"slip":     m.slip,
				})
				m.finish(p)
			})
		})
	}
}

// decide gives a job seats that no other job has been given.
func (m *machine) decide(p *rapid.T) {
	job := m.jobs[rapid.IntRange(0, len(m.jobs)-1).Draw(p, "job")]
	free := map[string]core.DeviceSet{} // none on a node that is gone
	for name := range m.nodes {
		free[name] = core.FirstDevices(m.devices)
	}
	for _, other := range m.jobs {
		for _, s := range other.Seats {
			if other != job {
				free[s.Node] &^= s.Devices
			}
		}
	}
	var seats []gang.Seat
	for _, s := range job.Seats {
		if rapid.Bool().Draw(p, "keep") {
			seats = append(seats, gang.Seat{Node: s.Node, Devices: s.Devices})
			free[s.Node] &^= s.Devices
		}
	}
	for range rapid.IntRange(0, 2).Draw(p, "more") {
		node := "node-" + strconv.Itoa(rapid.IntRange(0, 2).Draw(p, "node"))
		if devices := free[node] & core.DeviceSet(rapid.IntRange(1, 15).Draw(p, "devices")); devices != 0 {
			seats = append(seats, gang.Seat{Node: node, Devices: devices})
			free[node] &^= devices
		}
	}
	decide(job, rapid.IntRange(0, 3).Draw(p, "restart") == 0, seats...)
}

func (m *machine) driveOne(p *rapid.T) {
	job := m.jobs[rapid.IntRange(0, len(m.jobs)-1).Draw(p, "job")]
	if at := rapid.IntRange(-6, 6).Draw(p, "cut"); at > 0 {
		m.client.cutAt, m.client.how = m.client.count+at, rapid.SampledFrom(cuts).Draw(p, "how")
		m.client.dies = rapid.Bool().Draw(p, "dies")
	}
	_, err := m.driver.Drive(m.t.Context(), *job, m.look(rapid.IntRange(0, 20).Draw(p, "behind")))
	if err != nil && !errors.Is(err, gang.ErrAgain) {
		p.Fatalf("%v", err)
	}
	if m.client.dead {
		m.restart()
	}
	m.client.cutAt = 0
}

// fault is what others do.
func (m *machine) fault(p *rapid.T) {
	m.Lock()
	defer m.Unlock()
	if len(m.pods) == 0 {
		p.Skip("the draw has no pods yet")
	}
	pod := m.pods[rapid.SampledFrom(slices.Sorted(maps.Keys(m.pods))).Draw(p, "pod")]
	node := pod.Spec.NodeName
	switch what := rapid.SampledFrom([]string{"delete", "force", "refuse", "exit", "fail", "node"}).Draw(p, "what"); {
	case what == "delete":
		m.remove(pod, 30)
	case what == "force":
		m.remove(pod, 0)
	case node == "" || pod.Status.Phase == corev1.PodFailed || m.nodes[node] == nil:
	case what == "refuse" && pod.Status.Phase == corev1.PodPending:
		m.end(pod, 1, "OutOfcpu")
	case what == "fail":
		m.end(pod, 1, "")
	case what == "exit":
		m.end(pod, 0, "")
	case what == "node":
		delete(m.nodes, node)
		for uid, process := range m.processes {
			if process.node == node {
				delete(m.processes, uid)
			}
		}
		m.changed()
	}
}

// mend brings nodes back.
func (m *machine) mend(*rapid.T) {
	for i := range 3 {
		if name := "node-" + strconv.Itoa(i); m.nodes[name] == nil {
			m.addNode(name)
		}
	}
}

// takeover replaces the leader by one that lists what there is. The old one makes one more write.
func (m *machine) takeover(p *rapid.T) {
	m.old = &leader{driver: m.driver, look: m.look(rapid.IntRange(0, 20).Draw(p, "behind")), slips: 1}
	for _, job := range m.jobs {
		m.old.jobs = append(m.old.jobs, *job)
	}
	m.restart()
}

func (m *machine) slip(p *rapid.T) {
	if m.old == nil || m.old.slips == 0 {
		p.Skip("the draw has nobody to slip")
	}
	m.old.driver.Fence = func() error {
		if m.old.slips--; m.old.slips < 0 {
			return errFenced
		}
		return nil
	}
	job := m.old.jobs[rapid.IntRange(0, len(m.old.jobs)-1).Draw(p, "job")]
	if _, err := m.old.driver.Drive(m.t.Context(), job, m.old.look); err != nil && !errors.Is(err, errFenced) && !errors.Is(err, gang.ErrAgain) {
		p.Fatalf("%v", err)
	}
	m.old = nil
}

// finish gives every job a last decision that can be had, and looks at what comes of it.
func (m *machine) finish(p *rapid.T) {
	m.client.cutAt = 0
	m.mend(p)
	for range 3 {
		for i, state := range m.settle(p, m.jobs...) {
			if slices.ContainsFunc(state.Members, func(member gang.Member) bool { return member.Phase != gang.Running }) {
				decide(m.jobs[i], true, m.jobs[i].Seats...)
			}
		}
	}
	for i, state := range m.settle(p, m.jobs...) {
		want := gang.Running
		if len(m.jobs[i].Seats) == 0 {
			want = gang.Gone
		}
		if state.Phase != want {
			p.Fatalf("%s is %+v, want %s", m.jobs[i].Name, state, want)
		}
		m.holds(p, m.jobs[i])
	}
	m.must(p)
	before := m.client.count
	m.settle(p, m.jobs...)
	if m.client.count != before {
		p.Fatalf("there was nothing to do, and it took %d calls", m.client.count-before)
	}
}
