package trainingjob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	"github.com/quartet-sched/quartet/core"
)

// SchedulerName is the scheduler that pods of jobs name. Another one leaves them alone.
const SchedulerName = "quartet"

// PodTemplate reads the template. It is nil when it cannot be read. A field that the pods of this program's version do not
// have is a problem: it would be lost.
func (s *Spec) PodTemplate() (*corev1.PodTemplateSpec, core.Diagnostics) {
	var found problems
	if len(bytes.TrimSpace(s.Template.Raw)) == 0 {
		found.add("spec.template", "required but missing", "it is the pod template of a replica")
		return nil, found.Diagnostics
	}
	if size := len(s.Template.Raw); size > mostTemplate {
		found.add("spec.template", fmt.Sprintf("has %d bytes, at most %d leave room for the status of the job", size, mostTemplate), "keep what is large in a ConfigMap or an image")
		return nil, found.Diagnostics
	}
	template := new(corev1.PodTemplateSpec)
	unknown, err := kjson.UnmarshalStrict(s.Template.Raw, template)
	if err != nil {
		path, summary := "spec.template", strings.TrimPrefix(err.Error(), "json: ")
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
			path, summary = core.JoinPath(path, wrong.Field), "cannot be a "+wrong.Value
		}
		found.add(path, summary, "")
		return nil, found.Diagnostics
	}
	for _, problem := range unknown { // an unknown field, or one that is given twice
		found.add("spec.template", problem.Error(), "")
	}
	if s.Adopts == nil {
		found.template(&template.Spec)
	}
	return template, found.Diagnostics
}

// template finds what a template says that is for the scheduler to say.
func (p *problems) template(s *corev1.PodSpec) {
	const at = "spec.template.spec."
	if len(s.Containers) == 0 {
		p.add(at+"containers", "holds no container", "")
	}
	if s.NodeName != "" {
		p.add(at+"nodeName", "is for the scheduler to choose", "leave it out")
	}
	if s.SchedulerName != "" && s.SchedulerName != SchedulerName {
		p.add(at+"schedulerName", fmt.Sprintf("names another scheduler, %q", s.SchedulerName), "leave it out")
	}
	if len(s.SchedulingGates) > 0 {
		p.add(at+"schedulingGates", "keep the pods from being bound", "suspend the job instead")
	}
	if s.RestartPolicy == corev1.RestartPolicyAlways {
		p.add(at+"restartPolicy", "Always lets a replica never end", "leave it out: Never")
	}
}

// Disputed finds what the template says of devices that the job says otherwise: a pod gets as many as replicas.devicesPerReplica
// says, or several times as many where it has several replicas, and all of them are its first container's. Resource is the extended
// resource that they are of.
func (j *TrainingJob) Disputed(of corev1.ResourceName) core.Diagnostics {
	template, _ := j.Spec.PodTemplate()
	if template == nil || j.Spec.Adopts != nil {
		return nil
	}
	var found problems
	each := int64(j.DevicesPerReplica())
	s := &template.Spec
	for i := range s.Containers {
		path := fmt.Sprintf("spec.template.spec.containers[%d].resources", i)
		found.devices(path, &s.Containers[i], of, each, i == 0)
	}
	for i := range s.InitContainers { // they may use what the first container is to have
		if c := &s.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			found.devices(fmt.Sprintf("spec.template.spec.initContainers[%d].resources", i), c, of, each, false)
		}
	}
	return found.Diagnostics
}

// devices holds a container to the devices that it is given.
func (p *problems) devices(path string, c *corev1.Container, of corev1.ResourceName, each int64, given bool) {
	for _, list := range [...]corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		asked, ok := list[of]
		switch {
		case !ok || given && asked.CmpInt64(each) == 0:
			continue
		case given:
			p.add(path, fmt.Sprintf("asks for %s %s, and replicas.devicesPerReplica is %d", asked.String(), of, each), "leave it out here: the scheduler says it")
		case !asked.IsZero():
			p.add(path, fmt.Sprintf("asks for %s %s, and the devices of a pod are its first container's", asked.String(), of), "leave it out")
		default:
			continue
		}
		return
	}
}

// requests is the processors and the memory that the containers of a pod request together. A container that has a limit only
// requests as much.
func requests(s *corev1.PodSpec) (cpus, memory resource.Quantity) {
	sum := func(name corev1.ResourceName) (total resource.Quantity) {
		var most resource.Quantity // of those that run before the others, one after the other
		for i := range s.InitContainers {
			c := &s.InitContainers[i]
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				total.Add(request(c, name)) // it goes on beside them
				continue
			}
			if asked := request(c, name); asked.Cmp(most) > 0 {
				most = asked
			}
		}
		for i := range s.Containers {
			total.Add(request(&s.Containers[i], name))
		}
		if most.Cmp(total) > 0 {
			return most
		}
		return total
	}
	return sum(corev1.ResourceCPU), sum(corev1.ResourceMemory)
}

func request(c *corev1.Container, name corev1.ResourceName) resource.Quantity {
	if asked, given := c.Resources.Requests[name]; given {
		return asked
	}
	return c.Resources.Limits[name]
}
