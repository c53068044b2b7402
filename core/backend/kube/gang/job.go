package gang

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// What members carry.
const (
	JobLabel    = "quartet.sched/job"    // name of the job, shortened where it is too long for a label
	RunLabel    = "quartet.sched/run"    // number of the run
	MemberLabel = "quartet.sched/member" // number of the member
	NamesLabel  = "quartet.sched/names"  // the headless service that gives it its name; see [Names]

	NodeAnnotation    = "quartet.sched/node"    // where it is to run
	DevicesAnnotation = "quartet.sched/devices" // on which devices of the node, such as 0-3,6
	RanksAnnotation   = "quartet.sched/ranks"   // ranks of its replicas when it was created, such as 0-3
	RoundAnnotation   = "quartet.sched/round"   // of the decision for which it was created
	EpochAnnotation   = "quartet.sched/epoch"   // of the leader that decided

	DrainAnnotation = "quartet.sched/drain" // of a node: with "true", jobs are taken off while it is cordoned; a cordon alone keeps new work away

	NodesTaint = "quartet.sched/nodes" // of nodes that are for our jobs alone: members tolerate it

	Finalizer      = "quartet.sched/devices"
	ClaimFinalizer = "resource.kubernetes.io/delete-protection" // without it nobody frees what is allocated to a claim
)

// Seat is the devices of one member.
type Seat struct {
	Member  int            // unique in a run, and never used again in it; see [Number]
	Node    string         // name of the node
	Devices core.DeviceSet // indices of the devices on it
}

// Job is what was decided on a job.
type Job struct {
	Namespace, Name string                // of the object of the job
	UID             types.UID             // of that object
	Owner           metav1.OwnerReference // of its pods: the object of the job, of this UID, as their controller

	Run, Round, Epoch int64                  // number of the start, from 1; of the round that decided; of the leader's term
	Seats             []Seat                 // in the order of their ranks; none: it is stopped
	Template          corev1.PodTemplateSpec // of its pods
	DevicesPerReplica int                    // 0 stands for 1
	Grace             time.Duration          // to stop, in whole seconds
	StartTimeout      time.Duration          // from when a member is first seen bound until it runs, noticed when it is driven; 0 for none
	Agent             Agent                  // whom the job may speak to
	// Subdomain is the headless service of a run that began when each job had its own. Empty: it is [Names].
	Subdomain string
	// Keep leaves pods where they are that ended by themselves, for their logs. They go with the object of the job.
	Keep bool
	// Past is the last run that was asked to stop.
	Past Past
	// PodPerReplica says that each seat is one replica, whose pod may learn its rank from the environment.
	PodPerReplica bool
	// Adopts is set for a job whose pods others make. Then it has no template, and no agent.
	Adopts *Adoption
}

// Number gives seats their members. A seat of before that stays, with the same devices in the same run, keeps its member, and
// others get numbers from next on. It returns the number to go on with. Before are the seats that the job still has, without
// those whose members were lost or taken back: see [State.Kept]. A new run begins with 0 and no seats before.
func Number(before, now []Seat, next int) ([]Seat, int) {
	numbered := slices.Clone(now)
	for i, s := range numbered {
		if k := slices.IndexFunc(before, func(b Seat) bool { return b.Node == s.Node && b.Devices == s.Devices }); k >= 0 {
			numbered[i].Member = before[k].Member
			continue
		}
		numbered[i].Member = next
		next++
	}
	return numbered, next
}

// Agent is how a member reaches the scheduler. The zero value is for none.
type Agent struct {
	Address string // such as tls://quartet-agent.quartet.svc:9443
	CA      string // certificates, as PEM, of which one signed that of the scheduler
}

// Resize gives a run other seats in which members stay: those of before whose devices are among those of now. They come first, in
// their order, and what is left of a node becomes a member of its own, with a number from next on. It returns the number to go on
// with. No seats: none can stay.
func Resize(before, now []Seat, next int) ([]Seat, int) {
	var stay, join []Seat
	left := slices.Clone(now)
	for _, b := range before {
		i := slices.IndexFunc(left, func(s Seat) bool { return s.Node == b.Node && b.Devices&^s.Devices == 0 })
		if i < 0 {
			continue
		}
		left[i].Devices &^= b.Devices
		stay = append(stay, b)
	}
	if len(stay) == 0 {
		return nil, next
	}
	for _, s := range left {
		if s.Devices != 0 {
			s.Member = next
			next++
			join = append(join, s)
		}
	}
	return append(stay, join...), next
}

// Split gives each so many devices a member of its own. The first of a seat keeps the number of the seat, and others get numbers from next on. It
// returns the number to go on with.
func Split(seats []Seat, each, next int) (list []Seat, last int) {
	for _, s := range seats {
		for rest := s.Devices; rest != 0; {
			part := Seat{Member: s.Member, Node: s.Node, Devices: rest.Lowest(each)}
			if rest != s.Devices {
				part.Member, next = next, next+1
			}
			list, rest = append(list, part), rest&^part.Devices
		}
	}
	return list, next
}

// Pod is the name of a member's pod.
func (j *Job) Pod(member int) string { return j.name(member) }

// SeatOf is the index of the seat that a pod has, or -1.
func (j *Job) SeatOf(pod *corev1.Pod) int { return j.seat(pod) }

// World is what the member of a seat gets when others joined or left.
func (j *Job) World(seat int, generation int64) agent.World {
	first, _ := j.replicas(seat)
	return agent.World{Generation: generation, Rank: first, Replicas: j.total(), Nodes: j.nodes(), Address: j.master()}
}

// name is the name of a member. It holds a part of the UID, since a job may be deleted and another one get its name.
func (j *Job) name(member int) string {
	end := "-" + short(string(j.UID)) + "-r" + strconv.FormatInt(j.Run, 10) + "-" + strconv.Itoa(member)
	return fit(j.Name, validation.DNS1123LabelMaxLength-len(end)) + end
}

// Names is the headless service by which the members of all jobs of a namespace are found by name. One for each job would cost
// three writes a gang, of the service and of what the controller manager keeps for it.
const Names = "quartet-members"

// service is the headless service of the job, and the subdomain of its members.
func (j *Job) service() string {
	if j.Subdomain != "" {
		return j.Subdomain
	}
	return Names
}

// fit makes a name a label of DNS of at most so many bytes, with a hash of what it had to leave out.
func fit(name string, most int) string {
	fitted := strings.ReplaceAll(name, ".", "-")
	if fitted == name && len(name) <= most {
		return name
	}
	sum := short(name)
	return strings.TrimRight(fitted[:min(len(fitted), most-1-len(sum))], "-") + "-" + sum
}

// letters have no vowels, so that no words come out.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// short is a hash of five letters.
func short(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	var out [5]byte
	sum := h.Sum64()
	for i := range out {
		out[i] = letters[sum%uint64(len(letters))]
		sum /= uint64(len(letters))
	}
	return string(out[:])
}

// Labels are those by which the pods of a job are found. Jobs of one name have the same.
func (j *Job) Labels() map[string]string {
	return map[string]string{JobLabel: fit(j.Name, validation.LabelValueMaxLength)}
}

func (j *Job) perReplica() int { return max(j.DevicesPerReplica, 1) }

// replicas are the number of them on a seat, and the rank of its first.
func (j *Job) replicas(seat int) (first, count int) {
	for i, s := range j.Seats[:seat+1] {
		first += count
		if count = s.Devices.Count() / j.perReplica(); i == seat {
			break
		}
	}
	return first, count
}

// total is the number of replicas on all seats.
func (j *Job) total() int {
	if len(j.Seats) == 0 {
		return 0
	}
	first, count := j.replicas(len(j.Seats) - 1)
	return first + count
}

func (j *Job) nodes() int {
	nodes := map[string]bool{}
	for _, s := range j.Seats {
		nodes[s.Node] = true
	}
	return len(nodes)
}

// seat is the index of the seat that a pod has, or -1.
func (j *Job) seat(pod *corev1.Pod) int {
	if pod.Labels[RunLabel] != strconv.FormatInt(j.Run, 10) {
		return -1
	}
	node, devices, ok := Assigned(pod)
	return slices.IndexFunc(j.Seats, func(s Seat) bool {
		return ok && pod.Labels[MemberLabel] == strconv.Itoa(s.Member) && node == s.Node && devices == s.Devices
	})
}

// Assigned is the node and the devices that a member was created for. It is false for a pod that says neither.
func Assigned(pod *corev1.Pod) (node string, devices core.DeviceSet, ok bool) {
	devices, err := trainingjob.ParseDevices(pod.Annotations[DevicesAnnotation])
	node = pod.Annotations[NodeAnnotation]
	return node, devices, err == nil && devices != 0 && node != ""
}

// ranges is one range of count numbers.
func ranges(first, count int) string {
	if count <= 1 {
		return strconv.Itoa(first)
	}
	return strconv.Itoa(first) + "-" + strconv.Itoa(first+count-1)
}

// byName orders pods.
func byName(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
}
