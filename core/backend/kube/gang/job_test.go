package gang

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Nobody learns what others call theirs.
func TestHolderTo(t *testing.T) {
	for name, tc := range map[string]struct {
		holder Holder
		want   string
	}{
		"a pod":                     {Holder{Namespace: "team", Name: "a-0", Node: "n", Devices: 3}, "pod team/a-0 on n 0-1"},
		"a pod of others":           {Holder{Namespace: "secret", Name: "merger-0", Node: "n", Devices: 3}, "a pod of another namespace on n 0-1"},
		"a claim":                   {Holder{Namespace: "team", Name: "a-0", Node: "n", Claim: true, Devices: 1}, "claim team/a-0 on n 0"},
		"a claim of others":         {Holder{Namespace: "secret", Name: "merger-0", Node: "n", Claim: true}, "a claim of another namespace"},
		"a node":                    {Holder{Node: "n"}, "too few devices of n"},
		"a pod, with a number only": {Holder{Namespace: "secret", Name: "merger-0", Node: "n", Foreign: true}, "a pod of another namespace"},
	} {
		if got := tc.holder.To("team"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	of := []Holder{{Namespace: "secret", Name: "merger-0"}, {Namespace: "team", Name: "a-0"}}
	if got, want := list(of, "team"), "a pod of another namespace, pod team/a-0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAssigned(t *testing.T) {
	for name, tc := range map[string]struct {
		node, devices string
		want          bool
	}{
		"a member":       {"n", "0-3,6", true},
		"no node":        {"", "0", false},
		"no devices":     {"n", "", false},
		"what is no set": {"n", "3-1", false},
		"too many":       {"n", "64", false},
	} {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{NodeAnnotation: tc.node, DevicesAnnotation: tc.devices}
		node, devices, ok := Assigned(pod)
		if ok != tc.want || ok && (node != tc.node || trainingjob.FormatDevices(devices) != tc.devices) {
			t.Errorf("%s: %q, %v, %v", name, node, devices, ok)
		}
	}
}

// Names are such as the API server takes, whatever the job is called, and differ where jobs, runs or members do.
func TestNames(t *testing.T) {
	rapid.Check(t, func(p *rapid.T) {
		part := `[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?`
		j := &Job{
			Name: rapid.StringMatching(part+`(\.`+part+`){0,4}`).Draw(p, "name"), UID: types.UID(rapid.StringN(1, 8, 8).Draw(p, "uid")),
			Run: rapid.Int64Range(1, 1<<40).Draw(p, "run"),
		}
		other := *j
		member := rapid.IntRange(0, 1<<30).Draw(p, "member")
		for what, name := range map[string]string{"member": j.name(member), "label": j.Labels()[JobLabel]} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				p.Fatalf("%s %q: %v", what, name, problems)
			}
		}
		if other.Run++; other.name(member) == j.name(member) || j.name(member+1) == j.name(member) {
			p.Fatalf("%q is the name of two", j.name(member))
		}
	})
	a, b := Job{Name: "train", UID: "1", Run: 5}, Job{Name: "train", UID: "2", Run: 5}
	if a.name(0) == b.name(0) {
		t.Errorf("two jobs of one name share %q", a.name(0))
	}
	if got := a.name(3); !strings.HasPrefix(got, "train-") || !strings.HasSuffix(got, "-r5-3") {
		t.Errorf("name %q tells neither run nor member", got)
	}
	long, longer := Job{Name: strings.Repeat("x", 100)}, Job{Name: strings.Repeat("x", 101)}
	if long.name(0) == longer.name(0) {
		t.Error("long names are cut to the same")
	}
}

func TestNumber(t *testing.T) {
	before := []Seat{{Member: 4, Node: "a", Devices: 3}, {Member: 6, Node: "b", Devices: 1}}
	got, next := Number(before, []Seat{{Node: "c", Devices: 1}, {Node: "b", Devices: 1}, {Node: "a", Devices: 1}}, 7)
	want := []Seat{{Member: 7, Node: "c", Devices: 1}, {Member: 6, Node: "b", Devices: 1}, {Member: 8, Node: "a", Devices: 1}}
	if diff := cmp.Diff(want, got); diff != "" || next != 9 {
		t.Errorf("next %d; seats (-want +got):\n%s", next, diff)
	}
}

func TestSplit(t *testing.T) {
	got, next := Split([]Seat{{Member: 0, Node: "a", Devices: 0b11}, {Member: 4, Node: "b", Devices: 0b110111}, {Member: 5, Node: "c", Devices: 0b1}}, 2, 6)
	want := []Seat{
		{Member: 0, Node: "a", Devices: 0b11},
		{Member: 4, Node: "b", Devices: 0b11},
		{Member: 6, Node: "b", Devices: 0b10100},
		{Member: 7, Node: "b", Devices: 0b100000},
		{Member: 5, Node: "c", Devices: 0b1},
	}
	if diff := cmp.Diff(want, got); diff != "" || next != 8 {
		t.Errorf("next %d; seats (-want +got):\n%s", next, diff)
	}
}

func env(pairs ...string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

// A member knows who it is. What the user set stays, but for what only we can say, and nothing of the template is loosened.
func TestNewPod(t *testing.T) {
	no, nobody := false, int64(65532)
	j := &Job{
		Namespace: "team", Name: "train", UID: "u", Run: 7, Round: 12, Epoch: 3, DevicesPerReplica: 2, Grace: 1500 * time.Millisecond,
		Seats: []Seat{{Member: 5, Node: "n1", Devices: 0b1111}, {Member: 2, Node: "n2", Devices: 0b110000}, {Member: 6, Node: "n2", Devices: 0b11}},
		Agent: Agent{Address: "tls://agent:9443", CA: "-----"},
	}
	j.Template.Labels, j.Template.Annotations = map[string]string{"team": "x", RunLabel: "1"}, map[string]string{"note": "y"}
	j.Template.Spec = corev1.PodSpec{
		NodeName: "elsewhere", SchedulerName: "default-scheduler", ServiceAccountName: "me",
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: &nobody},
		Tolerations:     []corev1.Toleration{{Key: "gpu"}}, NodeSelector: map[string]string{"zone": "a"},
		InitContainers: []corev1.Container{{Name: "fetch"}},
		Containers: []corev1.Container{{
			Name: "main", SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no},
			Env: env("PET_NNODES", "2:4", "QUARTET_RANK", "0", "QUARTET_CHECKPOINT", "/data", "MINE", "1"),
		}, {Name: "sidecar", VolumeMounts: []corev1.VolumeMount{{Name: "mine", MountPath: tokenFolder}}}},
	}
	untouched := j.Template.DeepCopy()
	pod := j.newPod(1, Options{})
	if diff := cmp.Diff(untouched, &j.Template); diff != "" {
		t.Errorf("the template was changed (-before +after):\n%s", diff)
	}
	master := j.name(2) + "." + j.service()
	want := env(
		"QUARTET_JOB", "train", "QUARTET_RANK", "2", "QUARTET_REPLICAS", "4", "QUARTET_NODES", "2", "MASTER_ADDR", master,
		"PET_NPROC_PER_NODE", "2", "PET_RDZV_BACKEND", "c10d", "PET_RDZV_ENDPOINT", master+":29400", "PET_RDZV_ID", "train-7",
		"QUARTET_AGENT", "tls://agent:9443", "QUARTET_AGENT_CA", "-----", "QUARTET_AGENT_TOKEN", "/var/run/secrets/quartet.sched/token", "PET_NNODES", "2:4", "QUARTET_CHECKPOINT", "/data", "MINE", "1",
	)
	if diff := cmp.Diff(want, pod.Spec.Containers[0].Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	wantMeta := map[string]string{
		NodeAnnotation: "n2", DevicesAnnotation: "4-5", RanksAnnotation: "2", RoundAnnotation: "12", EpochAnnotation: "3", "note": "y",
	}
	if diff := cmp.Diff(wantMeta, pod.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{JobLabel: "train", RunLabel: "7", MemberLabel: "2", NamesLabel: Names, "team": "x"}, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	limit := pod.Spec.Containers[0].Resources.Limits[DefaultResource]
	if limit.Value() != 2 || len(pod.Spec.Containers[1].Resources.Limits) > 0 {
		t.Errorf("limits %v", pod.Spec.Containers)
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 2 {
		t.Errorf("grace %v, want 2 s", grace)
	}
	spec := pod.Spec.DeepCopy() // what is ours is as it has to be; all else is the user's
	if spec.NodeName != "" || spec.SchedulerName != trainingjob.SchedulerName || spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("spec %+v", spec)
	}
	spec.NodeName, spec.SchedulerName, spec.RestartPolicy = untouched.Spec.NodeName, untouched.Spec.SchedulerName, ""
	spec.Hostname, spec.Subdomain, spec.TerminationGracePeriodSeconds = "", "", nil
	if diff := cmp.Diff(corev1.Toleration{Key: NodesTaint, Operator: corev1.TolerationOpExists}, spec.Tolerations[1]); diff != "" {
		t.Errorf("toleration (-want +got):\n%s", diff)
	}
	spec.Tolerations = spec.Tolerations[:1]
	for i, c := range spec.Containers { // the sidecar mounts something of its own there
		if mounted := len(c.VolumeMounts) == 1 && c.VolumeMounts[0].Name == tokenVolume; mounted != (i == 0) {
			t.Errorf("container %d mounts %v", i, c.VolumeMounts)
		}
	}
	if token := spec.Volumes[0].Projected.Sources[0].ServiceAccountToken; token.Audience != Audience || token.Path != "token" || len(spec.InitContainers[0].VolumeMounts) > 0 {
		t.Errorf("token %+v", token)
	}
	spec.Volumes, spec.Containers[0].VolumeMounts = nil, nil
	spec.Containers[0].Env, spec.Containers[0].Resources = untouched.Spec.Containers[0].Env, corev1.ResourceRequirements{}
	spec.InitContainers[0].Env, spec.Containers[1].Env = nil, nil
	if diff := cmp.Diff(&untouched.Spec, spec); diff != "" {
		t.Errorf("spec (-template +pod):\n%s", diff)
	}
	if owner := pod.OwnerReferences[0]; owner.UID != "u" || owner.Controller == nil || !*owner.Controller {
		t.Errorf("owner %+v", owner)
	}
	alone := &Job{Name: "train", UID: "u", Run: 7, Seats: j.Seats[:1], Template: j.Template}
	pod = alone.newPod(0, Options{Class: "gpu"})
	if len(pod.Spec.Containers[0].Resources.Limits) > 0 || *pod.Spec.ResourceClaims[0].ResourceClaimName != pod.Name {
		t.Errorf("with claims: %+v", pod.Spec)
	}
	if i := indexOf(pod.Spec.Containers[0].Env, "MASTER_ADDR"); pod.Spec.Containers[0].Env[i].Value != pod.Spec.Hostname {
		t.Errorf("one member alone looks for %q, which nobody resolves before there is a service", pod.Spec.Containers[0].Env[i].Value)
	}
}

func indexOf(env []corev1.EnvVar, name string) int {
	for i, e := range env {
		if e.Name == name {
			return i
		}
	}
	return -1
}

// Members stay whose devices the job keeps, and what is left of a node becomes another member.
func TestResize(t *testing.T) {
	seats := func(list ...string) (out []Seat) { // member node devices
		for _, text := range list {
			parts := strings.Fields(text)
			member, err := strconv.Atoi(parts[0])
			devices, wrong := trainingjob.ParseDevices(parts[2])
			if err != nil || wrong != nil || devices == 0 {
				t.Fatal(text)
			}
			out = append(out, Seat{Member: member, Node: parts[1], Devices: devices})
		}
		return out
	}
	for name, tc := range map[string]struct{ before, now, want []Seat }{
		"the same":              {seats("0 a 0-1"), seats("0 a 0-1"), seats("0 a 0-1")},
		"another node joins":    {seats("0 a 0-1"), seats("0 b 2", "0 a 0-1"), seats("0 a 0-1", "7 b 2")},
		"more on the node":      {seats("0 a 0-1"), seats("0 a 0-3"), seats("0 a 0-1", "7 a 2-3")},
		"one leaves":            {seats("0 a 0-1", "1 b 0"), seats("0 b 0"), seats("1 b 0")},
		"what was added leaves": {seats("0 a 0-1", "3 a 2-3"), seats("0 a 0-1"), seats("0 a 0-1")},
		"two on a node stay":    {seats("0 a 0-1", "3 a 2-3"), seats("0 a 0-4"), seats("0 a 0-1", "3 a 2-3", "7 a 4")},
		"a part of a member":    {seats("0 a 0-3"), seats("0 a 0-1"), nil},
		"a part of one, and one": {
			seats("0 a 0-3", "1 b 0"), seats("0 a 0-1", "0 b 0"), seats("1 b 0", "7 a 0-1"),
		},
		"elsewhere":                 {seats("0 a 0-1"), seats("0 b 0-1"), nil},
		"other devices of the node": {seats("0 a 0-1"), seats("0 a 2-3"), nil},
		"nothing before":            {nil, seats("0 a 0"), nil},
	} {
		now := slices.Clone(tc.now)
		got, next := Resize(tc.before, tc.now, 7)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		most := 6
		for _, s := range got {
			most = max(most, s.Member)
		}
		if next != most+1 || !slices.Equal(now, tc.now) {
			t.Errorf("%s: goes on with %d; seats asked for are %v, were %v", name, next, tc.now, now)
		}
	}
}

// What members are told fits together: each rank once, and the place where all meet is that of the lowest.
func TestWorld(t *testing.T) {
	j := &Job{Name: "train", UID: "u", Run: 7, DevicesPerReplica: 2, Seats: []Seat{
		{Member: 5, Node: "n1", Devices: 0b1111}, {Member: 8, Node: "n2", Devices: 0b11}, {Member: 9, Node: "n1", Devices: 0b110000},
	}}
	for i, rank := range []int{0, 2, 3} {
		want := agent.World{Generation: 4, Rank: rank, Replicas: 4, Nodes: 2, Address: j.Pod(5) + "." + j.service()}
		if diff := cmp.Diff(want, j.World(i, 4)); diff != "" {
			t.Errorf("seat %d (-want +got):\n%s", i, diff)
		}
	}
	if pod := j.newPod(1, Options{}); j.SeatOf(pod) < 0 || pod.Name != j.Pod(8) {
		t.Errorf("pod %s is without a seat", pod.Name)
	} else if j.Run++; j.SeatOf(pod) >= 0 {
		t.Error("a pod of another run has a seat")
	}
}

// A run that began when each job had a service of its own keeps it: its members would not find those that join.
func TestARunKeepsItsService(t *testing.T) {
	for name, tc := range map[string]struct {
		subdomain, want string
		created         bool
	}{
		"now":    {"", "quartet-members", true},
		"before": {"train-bcdf", "train-bcdf", false},
	} {
		t.Run(name, func(t *testing.T) {
			j := &Job{Name: "train", UID: "u", Run: 1, Subdomain: tc.subdomain, Seats: []Seat{{Member: 0, Node: "a", Devices: 1}, {Member: 1, Node: "b", Devices: 1}}}
			j.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
			pod := j.newPod(1, Options{})
			if master := j.Pod(0) + "." + tc.want; pod.Spec.Subdomain != tc.want || j.World(1, 2).Address != master {
				t.Errorf("a member of %q is told of %q", pod.Spec.Subdomain, j.World(1, 2).Address)
			}
			p := &planner{job: j, look: &Look{}, pods: make([]*corev1.Pod, 2)}
			p.create()
			created := slices.ContainsFunc(p.steps, func(s Step) bool { return s.Kind == CreateService })
			if created != tc.created {
				t.Errorf("a service is created: %t", created)
			}
		})
	}
	s := newService("team")
	if diff := cmp.Diff(s.Spec.Selector, map[string]string{NamesLabel: (&Job{Seats: []Seat{{}}}).newPod(0, Options{}).Labels[NamesLabel]}); diff != "" || len(s.OwnerReferences) > 0 {
		t.Errorf("the service selects (-selector +label):\n%s", diff)
	}
}
