package gang

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Options say how members get their devices.
type Options struct {
	// Resource is the extended resource that a member asks for; nvidia.com/gpu if empty. The kubelet chooses which devices.
	Resource corev1.ResourceName
	// Class is the DeviceClass of claims. Empty: there are no claims, and members ask for Resource.
	Class string
	// Tolerate is keys of taints that members tolerate beside [NodesTaint] and what their template says.
	Tolerate []string
}

// DefaultResource is by which NVIDIA's device plugin offers devices.
const DefaultResource = corev1.ResourceName("nvidia.com/gpu")

func (o Options) resource() corev1.ResourceName {
	if o.Resource == "" {
		return DefaultResource
	}
	return o.Resource
}

const (
	requestName = "devices" // of the one request of a claim
	podKind     = "Pod"
	// The port is the one that torchrun takes by itself.
	rendezvousPort = "29400"
	// That of torch.distributed, for programs that torchrun does not start.
	masterPort = "29500"
)

// newPod is the member of a seat. What the template says stays, but for what makes it a member.
func (j *Job) newPod(seat int, o Options) *corev1.Pod {
	s := j.Seats[seat]
	template := j.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: j.name(s.Member), Namespace: j.Namespace, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{j.owner()}, Finalizers: append(template.Finalizers, Finalizer),
		},
		Spec: template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	labels, annotations := j.marks(seat)
	maps.Copy(pod.Labels, labels)
	maps.Copy(pod.Annotations, annotations)
	pod.Labels[NamesLabel] = j.service()

	spec := &pod.Spec
	spec.SchedulerName, spec.NodeName, spec.SchedulingGates = trainingjob.SchedulerName, "", nil
	spec.Hostname, spec.Subdomain = pod.Name, j.service()
	if spec.RestartPolicy == "" || spec.RestartPolicy == corev1.RestartPolicyAlways {
		spec.RestartPolicy = corev1.RestartPolicyNever // a training ends
	}
	for _, key := range append([]string{NodesTaint}, o.Tolerate...) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	if j.Grace > 0 {
		spec.TerminationGracePeriodSeconds = j.grace()
	}
	if len(spec.Containers) == 0 {
		return pod // the API server refuses it, in words
	}
	main := &spec.Containers[0]
	if o.Class != "" {
		spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: requestName, ResourceClaimName: &pod.Name})
		main.Resources.Claims = append(main.Resources.Claims, corev1.ResourceClaim{Name: requestName})
	} else {
		if main.Resources.Limits == nil {
			main.Resources.Limits = corev1.ResourceList{}
		}
		main.Resources.Limits[o.resource()] = *resource.NewQuantity(int64(s.Devices.Count()), resource.DecimalSI)
		delete(main.Resources.Requests, o.resource()) // it is the limit
	}
	environment := j.environment(seat)
	for i := range spec.InitContainers {
		spec.InitContainers[i].Env = merge(spec.InitContainers[i].Env, environment)
	}
	for i := range spec.Containers {
		spec.Containers[i].Env = merge(spec.Containers[i].Env, environment)
	}
	if j.Agent.Address != "" {
		addToken(spec)
	}
	return pod
}

// Audience is for whom the tokens of members are: nobody else takes them.
const Audience = "quartet.sched/agent"

// The token by which a member says who it is. The kubelet renews it.
const (
	tokenFolder  = "/var/run/secrets/quartet.sched"
	tokenFile    = "token"
	tokenVolume  = "quartet-agent"
	tokenSeconds = 3600
)

// addToken gives the containers a token of this very pod that opens nothing but the channel of its agent. One that mounts something
// of its own there has none.
func addToken(spec *corev1.PodSpec) {
	seconds := int64(tokenSeconds)
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: Audience, ExpirationSeconds: &seconds, Path: tokenFile},
		}}},
	}})
	for i := range spec.Containers {
		mounts := &spec.Containers[i].VolumeMounts
		if !slices.ContainsFunc(*mounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenFolder }) {
			*mounts = append(*mounts, corev1.VolumeMount{Name: tokenVolume, MountPath: tokenFolder, ReadOnly: true})
		}
	}
}

// owner is the reference by which the pods of the job are known, and deleted with it.
func (j *Job) owner() metav1.OwnerReference {
	owner, yes := j.Owner, true
	owner.UID, owner.Controller = j.UID, &yes
	return owner
}

// grace is that of a deletion; nil for what the pod says itself.
func (j *Job) grace() *int64 {
	if j.Grace <= 0 {
		return nil
	}
	rounded := int64(math.Ceil(j.Grace.Seconds()))
	return &rounded
}

// master is where the member with the lowest number is found: it was there first.
func (j *Job) master() string {
	master := j.name(slices.MinFunc(j.Seats, func(a, b Seat) int { return a.Member - b.Member }).Member)
	if len(j.Seats) > 1 {
		master += "." + j.service()
	}
	return master
}

// environment tells a member who it is, to those who read our variables and to torchrun and those like it.
func (j *Job) environment(seat int) []corev1.EnvVar {
	first, _ := j.replicas(seat)
	master := j.master()
	environment := []corev1.EnvVar{
		{Name: agent.JobVariable, Value: j.Name},
		{Name: agent.RankVariable, Value: strconv.Itoa(first)},
		{Name: agent.ReplicasVariable, Value: strconv.Itoa(j.total())},
		{Name: agent.NodesVariable, Value: strconv.Itoa(j.nodes())},
		{Name: "MASTER_ADDR", Value: master},
		{Name: "PET_NNODES", Value: strconv.Itoa(len(j.Seats))},
		{Name: "PET_NPROC_PER_NODE", Value: strconv.Itoa(j.Seats[seat].Devices.Count())},
		{Name: "PET_RDZV_BACKEND", Value: "c10d"},
		{Name: "PET_RDZV_ENDPOINT", Value: master + ":" + rendezvousPort},
		{Name: "PET_RDZV_ID", Value: j.Name + "-" + strconv.FormatInt(j.Run, 10)},
	}
	if j.PodPerReplica { // what a program reads that torchrun does not start
		environment = append(environment,
			corev1.EnvVar{Name: "RANK", Value: strconv.Itoa(first)},
			corev1.EnvVar{Name: "WORLD_SIZE", Value: strconv.Itoa(j.total())},
			corev1.EnvVar{Name: "LOCAL_RANK", Value: "0"},
			corev1.EnvVar{Name: "MASTER_PORT", Value: masterPort},
		)
	}
	if j.Agent.Address != "" {
		environment = append(environment,
			corev1.EnvVar{Name: agent.SocketVariable, Value: j.Agent.Address},
			corev1.EnvVar{Name: agent.CAVariable, Value: j.Agent.CA},
			corev1.EnvVar{Name: agent.TokenVariable, Value: tokenFolder + "/" + tokenFile},
		)
	}
	return environment
}

// merge sets ours before those of the user, who may refer to them. What the user set stays, but of our own variables only the
// folders are the user's to say.
func merge(users, ours []corev1.EnvVar) []corev1.EnvVar {
	usersOwn := func(name string) bool {
		return !strings.HasPrefix(name, "QUARTET_") || name == agent.CheckpointVariable || name == agent.RendezvousVariable
	}
	var merged []corev1.EnvVar
	for _, o := range ours {
		if !usersOwn(o.Name) || !slices.ContainsFunc(users, func(u corev1.EnvVar) bool { return u.Name == o.Name }) {
			merged = append(merged, o)
		}
	}
	for _, u := range users {
		if usersOwn(u.Name) {
			merged = append(merged, u)
		}
	}
	return merged
}

// newService is by which members find each other, also before they are ready. It is no job's, and stays.
func newService(namespace string) *corev1.Service {
	names := map[string]string{NamesLabel: Names}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: Names, Namespace: namespace, Labels: names},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: names},
	}
}

// newClaim is what a member asks devices by. It goes with the pod.
func newClaim(pod *corev1.Pod, devices int, o Options) *resourcev1.ResourceClaim {
	yes := true // it blocks no deletion: that takes another right
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, Labels: map[string]string{JobLabel: pod.Labels[JobLabel]},
			Finalizers: []string{ClaimFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1.SchemeGroupVersion.Version, Kind: podKind, Name: pod.Name, UID: pod.UID, Controller: &yes,
			}},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: requestName,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: o.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(devices),
			},
		}}}},
	}
}

// Device is by which names a claim is given a device.
type Device struct {
	Driver, Pool, Name string // of the driver that published it, of its pool, and of the device in the pool
}

// Allocated are the devices that a claim holds, in the order in which it was given them. Those that it only watches are not held.
func Allocated(claim *resourcev1.ResourceClaim) (devices []Device) {
	if claim.Status.Allocation == nil {
		return nil
	}
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess {
			devices = append(devices, Device{r.Driver, r.Pool, r.Device})
		}
	}
	return devices
}

// allocate fills in what a claim gets, and for which pod.
func allocate(claim *resourcev1.ResourceClaim, pod *corev1.Pod, node string, devices []Device, config []resourcev1.DeviceAllocationConfiguration) *resourcev1.ResourceClaim {
	claim = claim.DeepCopy()
	allocation := &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		},
	}}}}
	allocation.Devices.Config = config
	for _, d := range devices {
		allocation.Devices.Results = append(allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: requestName, Driver: d.Driver, Pool: d.Pool, Device: d.Name,
		})
	}
	claim.Status.Allocation = allocation
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	return claim
}

// newBinding puts a pod on a node, and only that very pod. One of others, which may be told to go elsewhere, is bound as it was
// seen.
func (j *Job) newBinding(pod *corev1.Pod, node string) *corev1.Binding {
	b := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if j.Adopts != nil {
		b.ResourceVersion = pod.ResourceVersion
	}
	return b
}
