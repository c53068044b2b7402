package exchange

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
)

// kubeObject is an object of Kubernetes: a Job, a Pod, a Workload of Kueue, or a job of one of the operators that follow the same
// conventions.
type kubeObject struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		UID       string            `json:"uid"`
		Created   string            `json:"creationTimestamp"`
		Labels    map[string]string `json:"labels"`
		Owners    []struct {
			UID string `json:"uid"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Spec   map[string]any `json:"spec"`
	Status kubeStatus     `json:"status"`
}

// kubeStatus is what became of an object. The operators write the same in different places.
type kubeStatus struct {
	Phase      string          `json:"phase"`          // of a Pod
	JobStatus  string          `json:"jobStatus"`      // of a RayJob
	Start      string          `json:"startTime"`      // of all but Workloads
	Completed  string          `json:"completionTime"` // of Jobs and training jobs
	End        string          `json:"endTime"`        // of a RayJob
	Conditions []kubeCondition `json:"conditions"`
	Containers []struct {
		State struct {
			Terminated struct {
				Finished string `json:"finishedAt"`
			} `json:"terminated"`
		} `json:"state"`
	} `json:"containerStatuses"` // of a Pod
}

// kubeCondition is a condition of an object. Those of Volcano have no type, and their status is what others call so.
type kubeCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason"`
	Since  string `json:"lastTransitionTime"`
}

// name is what holds; empty for a condition that does not.
func (c *kubeCondition) name() string {
	switch {
	case c.Type == "":
		return c.Status
	case c.Status == "True":
		return c.Type
	}
	return ""
}

// kubeOwned is a record of an object that others may own.
type kubeOwned struct {
	record Record
	owners []string // by UID
}

// kubeReader reads objects of Kubernetes.
type kubeReader struct {
	*importer
	current kubeObject
	owned   []kubeOwned
	uids    map[string]bool // of all objects
}

// kubectl reads what kubectl prints as JSON: a list of objects, or one of them.
func (in *importer) kubectl(content io.Reader) error {
	if err := in.checkFixed(); err != nil {
		return err
	}
	d := json.NewDecoder(content)
	k := &kubeReader{importer: in, uids: map[string]bool{}}
	if err := k.read(d); err != nil {
		return in.notJSON(d, err, "output of kubectl", `expected {"items": [{"kind": …, "metadata": {…}, …}, …], …}`)
	}
	for i := range k.owned {
		o := &k.owned[i]
		if k.owns(o.owners) {
			k.tally.drop("belongs to another object of the list", int(o.record.line), o.record.Name)
			continue
		}
		k.keep(&o.record)
	}
	return nil
}

// owns reports whether one of the objects is that of an owner.
func (k *kubeReader) owns(owners []string) bool {
	for _, uid := range owners {
		if k.uids[uid] {
			return true
		}
	}
	return false
}

const reasonNoObject = "item is not an object of Kubernetes"

// read reads the root, whose items are read as a stream.
func (k *kubeReader) read(d *json.Decoder) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	single := map[string]json.RawMessage{}
	list := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if name == "items" {
			list = true
			err = k.elements(d, &k.current, func() { k.current = kubeObject{} }, k.object, reasonNoObject)
		} else {
			var value json.RawMessage
			err = d.Decode(&value)
			single[name] = value
		}
		if err != nil {
			return err
		}
	}
	if err := expect(d, '}'); err != nil {
		return err
	}
	if err := ended(d, "list"); err != nil || list {
		return err
	}
	text, err := json.Marshal(single)
	if err != nil {
		return err
	}
	k.tally.rows++
	if err := json.Unmarshal(text, &k.current); err != nil || k.current.Kind == "" {
		return errors.New("it has no items, and is no object")
	}
	k.object()
	return nil
}

// object keeps a job until all objects are known, or drops it. Line stands for its place in the list.
func (k *kubeReader) object() {
	o := &k.current
	if o.Metadata.UID != "" {
		k.uids[o.Metadata.UID] = true
	}
	r := Record{Name: o.Metadata.Name, line: int32(k.tally.rows), Start: nan, Limit: nan, Estimate: nan}
	if o.Metadata.Namespace != "" {
		r.Name = o.Metadata.Namespace + "/" + r.Name
	}
	if reason := k.take(&r, o); reason != "" {
		k.tally.drop(reason, k.tally.rows, r.Name)
		return
	}
	owned := kubeOwned{record: r}
	for _, owner := range o.Metadata.Owners {
		owned.owners = append(owned.owners, owner.UID)
	}
	k.owned = append(k.owned, owned)
}

// take takes the record of an object, and returns why the object is dropped, or nothing.
func (k *kubeReader) take(r *Record, o *kubeObject) (reason string) {
	end, outcome := o.Status.ended()
	r.Outcome = outcome
	for _, keep := range k.Keep {
		if !k.keeps(outcome) {
			return reasonKeep(keep)
		}
	}
	devices := devicesOf(o.Spec)
	tenant := o.tenant()
	switch {
	case o.Metadata.Name == "" || !printable([]byte(r.Name)):
		return reasonName
	case !printable([]byte(tenant)):
		return "tenant cannot be read"
	case devices == 0:
		return reasonNoGPU
	case !(devices > 0 && devices <= maxCount) || devices != math.Trunc(devices):
		return "GPUs cannot be read"
	case unknown([]byte(end)):
		return reasonNotEnded
	}
	r.Replicas, r.Tenant = int32(devices), k.label([]byte(tenant))
	for _, name := range [...]string{"activeDeadlineSeconds", "maximumExecutionTimeSeconds"} {
		if limit, ok := o.Spec[name].(float64); ok && 0 < limit && limit <= maxSeconds {
			r.Limit = limit
		}
	}
	return k.takeTimes(r, o, end)
}

// takeTimes takes when a job was submitted, started and ended, and returns why it is dropped, or nothing.
func (k *kubeReader) takeTimes(r *Record, o *kubeObject, end string) (reason string) {
	submitted, submitOK := k.instantIf(o.Metadata.Created)
	started, startOK := k.instantIf(o.Status.started())
	finished, endOK := k.instantIf(end)
	r.Submit, r.Start = submitted.first, started.first
	switch {
	case !submitOK || !startOK || !endOK:
		return "a time cannot be read"
	case r.Submit != r.Submit:
		return "submit_s is not known"
	case r.Start != r.Start:
		return "start is not known"
	}
	r.Duration = micros(finished.first - r.Start)
	return r.fault()
}

// started is when a job started, as a date; empty where nobody says.
func (s *kubeStatus) started() string {
	if s.Start != "" {
		return s.Start
	}
	for _, name := range [...]string{"Running", "Admitted", "QuotaReserved"} {
		for i := range s.Conditions {
			if s.Conditions[i].name() == name {
				return s.Conditions[i].Since
			}
		}
	}
	return ""
}

// ended is when a job ended, as a date, and how; empty for one that has not.
func (s *kubeStatus) ended() (end, outcome string) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		switch c.name() {
		case "Complete", "Completed", "Succeeded", "Finished", "Failed", "Terminated", "Aborted":
		default:
			continue
		}
		end, outcome = c.Since, c.outcome()
		break
	}
	for _, word := range [...]string{s.Phase, s.JobStatus} {
		if how, over, known := outcomeOf(word); word != "" && known && over && outcome == "" {
			outcome = how
		}
	}
	for _, written := range [...]string{s.Completed, s.End} {
		if written != "" {
			end = written
		}
	}
	if end == "" && outcome != "" { // of a Pod: dates of one zone are ordered as texts
		for i := range s.Containers {
			end = max(end, s.Containers[i].State.Terminated.Finished)
		}
	}
	return end, outcome
}

// outcome is how a job ended whose last condition it is.
func (c *kubeCondition) outcome() string {
	if c.Reason == "DeadlineExceeded" {
		return "timeout"
	}
	for _, word := range [...]string{c.Reason, c.name()} {
		if outcome, _, known := outcomeOf(word); word != "" && known && outcome != "" {
			return outcome
		}
	}
	return "cancelled"
}

// tenant is the queue of a job, or else its namespace.
func (o *kubeObject) tenant() string {
	if queue := o.Metadata.Labels["kueue.x-k8s.io/queue-name"]; queue != "" {
		return queue
	}
	for _, name := range [...]string{"queueName", "queue"} {
		if queue, _ := o.Spec[name].(string); queue != "" {
			return queue
		}
	}
	return o.Metadata.Namespace
}

// devicesOf counts the GPUs that a part of a specification asks for, in all the pods that it stands for; NaN where that cannot be read.
func devicesOf(value any) (total float64) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			total += devicesOf(item)
		}
	case map[string]any:
		for key, inner := range v {
			switch key {
			case "resources", "resourcesPerNode":
				total += requested(inner)
			case "initContainers": // their devices are those of the containers after them
			default:
				total += devicesOf(inner)
			}
		}
		for _, times := range [...]string{"replicas", "parallelism", "count", "numNodes"} {
			if n, ok := v[times].(float64); ok && total != 0 {
				total *= n
			}
		}
	}
	return total
}

// requested is the number of GPUs of a container; NaN where that cannot be read.
func requested(resources any) (total float64) {
	of, _ := resources.(map[string]any)
	for _, kind := range [...]string{"limits", "requests"} {
		list, _ := of[kind].(map[string]any)
		for name, value := range list {
			if !strings.HasSuffix(name, "/gpu") {
				continue
			}
			switch amount := value.(type) {
			case float64:
				total += amount
			case string:
				n, whole := count([]byte(amount))
				if !whole {
					return nan
				}
				total += float64(n)
			default:
				return nan
			}
		}
		if total != 0 {
			break
		}
	}
	return total
}
