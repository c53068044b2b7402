package kube

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// declared is a job that a file declares.
type declared struct {
	job *trainingjob.TrainingJob
	at  func(path string) core.Position // where a path of the object is written
}

// Submit creates the jobs of a file, all or none: the API server is first asked whether it would take each. The file is a job
// file, or holds TrainingJobs. All problems with it are reported together, with their positions.
func (c *Cluster) Submit(ctx context.Context, f backend.JobFile) ([]string, error) {
	list, problems := c.read(f)
	taken := map[string]bool{}
	for i := range list {
		d := &list[i]
		wrong := c.place(d)
		if name := d.job.JobName(); d.job.Name != "" && taken[name] {
			wrong = append(wrong, core.Diagnostic{Position: d.at("metadata.name"), Path: "metadata.name", Summary: fmt.Sprintf("%q is given twice", d.job.Name)})
		}
		taken[d.job.JobName()] = true
		if problems = append(problems, wrong...); len(wrong) > 0 && !onlyTemplate(wrong) {
			continue // it could not be asked for
		}
		refused, err := c.create(ctx, d, true)
		if err != nil {
			return nil, err
		}
		problems = append(problems, refused...)
	}
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b core.Diagnostic) int { return cmp.Compare(a.Position.Line, b.Position.Line) })
		return nil, problems.Err()
	}
	var names []string
	for i := range list {
		d := &list[i]
		refused, err := c.create(ctx, d, false)
		if err == nil {
			err = refused.Err()
		}
		if err != nil { // it changed its mind
			if len(names) > 0 {
				err = fmt.Errorf("%w; created before it: %s", err, strings.Join(names, ", "))
			}
			return names, err
		}
		names = append(names, c.nameOf(d.job))
	}
	c.noteTooLarge(ctx, list)
	c.noteSharedPods(list)
	return names, nil
}

// noteSharedPods says of jobs whose pods may have several replicas that the CPU and memory of a pod are the same for any number of them.
func (c *Cluster) noteSharedPods(list []declared) {
	for i := range list {
		t := list[i].job
		if spec, wrong := t.JobSpec(0, 0); t.Spec.PodPer == "" && len(wrong) == 0 && spec.MaxReplicas > t.DevicesPerReplica() && spec.CPUs+spec.MemoryGB > 0 {
			c.note("a pod of job %q has the CPU and memory of its template, also with several replicas on a node; set spec.podPer to %s for a pod of each, or to %s if that is meant",
				c.nameOf(t), trainingjob.PodPerReplica, trainingjob.PodPerNode)
		}
	}
}

// noteTooLarge tells of jobs a replica of which has more devices than any node now. Who may not list nodes is told nothing.
func (c *Cluster) noteTooLarge(ctx context.Context, list []declared) {
	if len(list) == 0 {
		return
	}
	most := slices.MaxFunc(list, func(a, b declared) int { return a.job.DevicesPerReplica() - b.job.DevicesPerReplica() }).job
	if most.DevicesPerReplica() == 1 {
		return // any node with devices has it
	}
	nodes, err := c.api.Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"}) // as the API server remembers them
	if err != nil {
		return
	}
	largest := 0
	for i := range nodes.Items {
		largest = max(largest, devicesOf(&nodes.Items[i]))
	}
	if devices := most.DevicesPerReplica(); largest > 0 && devices > largest { // with none they may be given by claims
		c.note("a replica of job %q has %d devices of one node, and no node has more than %d now", c.nameOf(most), devices, largest)
	}
}

// nameOf is what a job is called where the others are listed.
func (c *Cluster) nameOf(t *trainingjob.TrainingJob) string {
	if t.Namespace == c.namespace {
		return t.Name
	}
	return t.JobName()
}

// create creates a job, or asks whether it would be. What the API server refuses as invalid are problems of the file.
func (c *Cluster) create(ctx context.Context, d *declared, dry bool) (core.Diagnostics, error) {
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := c.jobs.Of(d.job.Namespace).Create(ctx, d.job, options)
	var status *apierrors.StatusError
	switch {
	case apierrors.IsAlreadyExists(err):
		return core.Diagnostics{{
			Position: d.at("metadata.name"), Path: "metadata.name",
			Summary: fmt.Sprintf("there is a job %q in namespace %q already", d.job.Name, d.job.Namespace), Hint: "choose another name, or delete that one",
		}}, nil
	case apierrors.IsInvalid(err) && errors.As(err, &status) && status.ErrStatus.Details != nil && len(status.ErrStatus.Details.Causes) > 0:
		return invalid(d, status.ErrStatus.Details.Causes), nil
	case apierrors.IsNotFound(err) && !nothingNamed(err):
		return core.Diagnostics{{
			Position: d.at("metadata.namespace"), Path: "metadata.namespace", Summary: fmt.Sprintf("there is no namespace %q", d.job.Namespace),
		}}, nil
	}
	return nil, c.words(fmt.Sprintf("submit job %q to namespace %q", d.job.Name, d.job.Namespace), err)
}

// invalid words what the API server says of each field.
func invalid(d *declared, causes []metav1.StatusCause) (problems core.Diagnostics) {
	for _, cause := range causes {
		if len(causes) > 1 && strings.Contains(cause.Message, "RFC 1123") {
			continue // the rules of the definition say it in fewer words
		}
		field := strings.Trim(cause.Field, "<>")
		if field == "nil" || field == "" {
			field = "metadata.name" // the rules of a whole job are about its name
		}
		summary := strings.TrimPrefix(strings.TrimPrefix(cause.Message, "Invalid value: "), `"object": `)
		summary = strings.Replace(summary, field+" in body ", "", 1)
		problems = append(problems, core.Diagnostic{Position: d.at(field), Path: field, Summary: summary})
	}
	return problems
}

// place puts a job into its namespace, and finds what the API server does not look at.
func (c *Cluster) place(d *declared) (problems core.Diagnostics) {
	t := d.job
	switch {
	case t.Namespace == "":
		t.Namespace = c.namespace
	case c.given && t.Namespace != c.namespace:
		problems = append(problems, core.Diagnostic{
			Path: "metadata.namespace", Summary: fmt.Sprintf("is %q, and --namespace says %q", t.Namespace, c.namespace), Hint: "say it in one place",
		})
	}
	if t.Name == "" {
		problems = append(problems, core.Diagnostic{Path: "metadata.name", Summary: "required but missing", Hint: "give the job a name"})
	}
	_, wrong := t.Spec.PodTemplate()
	for _, p := range append(wrong, t.Disputed(gang.DefaultResource)...) { // a scheduler that knows them by another name tells itself
		if match := unknownField.FindStringSubmatch(p.Summary); match != nil {
			p.Path, p.Summary = p.Path+"."+match[1], "unknown field"
		}
		problems = append(problems, p)
	}
	for i := range problems {
		problems[i].Position = d.at(problems[i].Path)
	}
	return problems
}

// unknownField is how a reader tells of a field that it does not know.
var unknownField = regexp.MustCompile(`^unknown field "([^"]+)"$`)

// onlyTemplate reports whether nothing is wrong but the template, which the API server does not read.
func onlyTemplate(problems core.Diagnostics) bool {
	return !slices.ContainsFunc(problems, func(d core.Diagnostic) bool { return !strings.HasPrefix(d.Path, "spec.template") })
}

// read reads the jobs of a file of either form.
func (c *Cluster) read(f backend.JobFile) ([]declared, core.Diagnostics) {
	documents, problems := split(f)
	if len(problems) > 0 {
		return nil, problems
	}
	if len(documents) > 0 && documents[0].Root.Kind == yaml.MappingNode && !has(documents[0].Root, "kind") && !has(documents[0].Root, "apiVersion") {
		return c.readJobs(f)
	}
	var list []declared
	for _, document := range documents {
		job, wrong := object(document)
		if problems = append(problems, wrong...); job != nil {
			list = append(list, declared{job, document.At})
		}
	}
	if len(list) == 0 && len(problems) == 0 {
		problems = core.Diagnostics{{Position: core.Position{File: f.Name}, Summary: "is empty"}}
	}
	return list, problems
}

// split reads the documents of a file. Empty ones are left out.
func split(f backend.JobFile) (list []*yamlpos.Document, problems core.Diagnostics) {
	decoder := yaml.NewDecoder(bytes.NewReader(f.Text))
	for {
		var n yaml.Node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			d := core.Diagnostic{Position: core.Position{File: f.Name}, Summary: strings.TrimPrefix(err.Error(), "yaml: ")}
			if line, rest, found := strings.Cut(strings.TrimPrefix(d.Summary, "line "), ": "); found {
				if at, err := strconv.Atoi(line); err == nil {
					d.Position.Line, d.Summary = at, rest
				}
			}
			return nil, core.Diagnostics{d}
		}
		if len(n.Content) > 0 && n.Content[0].Tag != "!!null" {
			list = append(list, &yamlpos.Document{File: f.Name, Root: n.Content[0]})
		}
	}
}

func has(mapping *yaml.Node, key string) bool {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return true
		}
	}
	return false
}

// object reads a TrainingJob, strictly: what it does not know the API server would leave out.
func object(d *yamlpos.Document) (*trainingjob.TrainingJob, core.Diagnostics) {
	diagnose := func(path, summary, hint string) core.Diagnostics {
		return core.Diagnostics{{Position: d.At(path), Path: path, Summary: summary, Hint: hint}}
	}
	text, err := yaml.Marshal(d.Root)
	if err == nil {
		text, err = kyaml.YAMLToJSON(text)
	}
	if err != nil {
		return nil, diagnose("", err.Error(), "")
	}
	job := new(trainingjob.TrainingJob)
	var kind metav1.TypeMeta
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, diagnose("", "is no object of Kubernetes", "")
	}
	if kind.Kind != trainingjob.Kind {
		return nil, diagnose("kind", fmt.Sprintf("is %q, and only a %s is a job", kind.Kind, trainingjob.Kind), "kubectl creates others")
	}
	if want := trainingjob.GroupVersion().String(); kind.APIVersion != want {
		return nil, diagnose("apiVersion", fmt.Sprintf("is %q", kind.APIVersion), "write "+want)
	}
	unknown, err := kjson.UnmarshalStrict(text, job)
	if err != nil {
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
			return nil, diagnose(wrong.Field, "cannot be a "+wrong.Value, "")
		}
		return nil, diagnose("", strings.TrimPrefix(err.Error(), "json: "), "")
	}
	var problems core.Diagnostics
	for _, one := range unknown {
		path, summary := "", one.Error() // or a field that is given twice
		if match := unknownField.FindStringSubmatch(summary); match != nil {
			path, summary = match[1], "unknown field"
		}
		problems = append(problems, diagnose(path, summary, "")...)
	}
	problems = append(problems, zeros(text, diagnose)...)
	job.Status = trainingjob.Status{} // the scheduler's own
	return job, problems
}

// zeros finds numbers that may not be 0, which an object of Go cannot tell from those that are left out.
func zeros(text []byte, diagnose func(path, summary, hint string) core.Diagnostics) (problems core.Diagnostics) {
	var raw struct{ Spec map[string]any }
	if json.Unmarshal(text, &raw) != nil {
		return nil // it is told elsewhere
	}
	for path, within := range map[string]any{"spec": raw.Spec, "spec.replicas": raw.Spec["replicas"], "spec.batch": raw.Spec["batch"]} {
		fields, _ := within.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if fields[name] == 0.0 && name != "work" && name != "graceSeconds" {
				problems = append(problems, diagnose(path+"."+name, "is 0", "write more, or leave it out")...)
			}
		}
	}
	slices.SortFunc(problems, func(a, b core.Diagnostic) int { return strings.Compare(a.Path, b.Path) })
	return problems
}

// readJobs reads a job file, such as `quartet run` takes.
func (c *Cluster) readJobs(f backend.JobFile) ([]declared, core.Diagnostics) {
	jobs, err := workload.DecodeJobs(f.Name, f.Text)
	if err != nil {
		if found, is := errors.AsType[core.Diagnostics](err); is {
			return nil, found
		}
		return nil, core.Diagnostics{{Position: core.Position{File: f.Name}, Summary: err.Error()}}
	}
	if c.options.Image == "" {
		return nil, core.Diagnostics{{
			Position: core.Position{File: f.Name}, Summary: "a job file names no image, and pods need one", Hint: "name it with --image, or submit TrainingJobs",
		}}
	}
	document, values, err := yamlpos.Parse(f.Name, f.Text)
	if err != nil { // it was read before
		return nil, core.Diagnostics{{Position: core.Position{File: f.Name}, Summary: err.Error()}}
	}
	entries, _ := values["jobs"].([]any)
	var list []declared
	var problems core.Diagnostics
	for i := range jobs {
		at := fmt.Sprintf("jobs[%d]", i)
		entry := map[string]any{}
		if i < len(entries) {
			entry, _ = entries[i].(map[string]any)
		}
		for _, p := range foreign(&jobs[i], entry) {
			p.Path = at + "." + p.Path
			p.Position = document.At(p.Path)
			problems = append(problems, p)
		}
		job, err := c.convert(&jobs[i])
		if err != nil {
			problems = append(problems, core.Diagnostic{Position: document.At(at), Path: at, Summary: err.Error()})
			continue
		}
		list = append(list, declared{job, func(path string) core.Position { return document.At(at + "." + keyOf(path)) }})
	}
	return list, problems
}

// keyOf is the key of a job file by which a field of the object is meant.
func keyOf(field string) string {
	field = strings.TrimPrefix(field, "spec.")
	for _, known := range [...]struct{ field, key string }{
		{"metadata.name", "name"},
		{"queue", "tenant"},
		{"replicas.min", "min_replicas"},
		{"replicas.max", "max_replicas"},
		{"requested", "replicas"},
		{"replicas", "replicas"},
		{"work", "iterations"},
		{"batch", "batch"},
		{"template", "command"},
		{"accelerators", "accelerators"},
	} {
		if field == known.field || strings.HasPrefix(field, known.field+".") {
			return known.key
		}
	}
	return field
}

// foreign is what a job file says that a TrainingJob cannot.
func foreign(j *workload.Job, entry map[string]any) (problems core.Diagnostics) {
	report := func(path, summary, hint string) {
		problems = append(problems, core.Diagnostic{Path: path, Summary: summary, Hint: hint})
	}
	if len(j.Spec.Command) == 0 && entry["command"] == nil {
		report("name", "the job has no command", "give it one, or submit a TrainingJob with an image that has its own")
	}
	if dir := j.Process.Dir; dir != "" && !path.IsAbs(dir) {
		report("dir", fmt.Sprintf("%q is relative to a folder of this machine", dir), "write a folder of the image, or leave it out")
	}
	for _, limit := range [...]struct {
		key   string
		given bool
	}{{"retries", j.Process.Retries > 0}, {"lost_retries", j.Process.LostRetries != nil}, {"start_retries", j.Process.StartRetries != nil}} {
		if !limit.given {
			continue
		}
		report(limit.key, "a job on Kubernetes is not repeated when it fails", "set the template's restartPolicy to OnFailure in a TrainingJob")
	}
	if j.Process.Checkpoints {
		report("checkpoint", "there is no folder of checkpoints on Kubernetes", "submit a TrainingJob with a volume, and QUARTET_CHECKPOINT in its environment")
	}
	if j.Spec.SubmitSeconds > 0 {
		report("submit", "a job on Kubernetes is submitted now", "leave it out")
	}
	return problems
}

// convert makes a job of a job file one of Kubernetes.
func (c *Cluster) convert(j *workload.Job) (*trainingjob.TrainingJob, error) {
	s := &j.Spec
	main := corev1.Container{Name: "main", Image: c.options.Image, Command: s.Command, WorkingDir: j.Process.Dir}
	for _, v := range j.Process.Environment {
		main.Env = append(main.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	asked := corev1.ResourceList{}
	if s.CPUs > 0 {
		asked[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(s.CPUs*1000), resource.DecimalSI)
	}
	if s.MemoryGB > 0 {
		asked[corev1.ResourceMemory] = *resource.NewQuantity(int64(s.MemoryGB*(1<<30)), resource.BinarySI)
	}
	if len(asked) > 0 {
		main.Resources.Requests = asked
	}
	template, err := json.Marshal(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{main}}})
	if err != nil {
		return nil, err
	}
	t := &trainingjob.TrainingJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name},
		Spec: trainingjob.Spec{
			Queue: s.Tenant, Weight: s.Weight, Application: s.Application, Experiment: s.Experiment, Accelerators: s.Accelerators, Pinned: s.Pinned, Requested: s.Requested,
			Replicas: trainingjob.Replicas{Min: s.MinReplicas, Max: s.MaxReplicas},
			Batch: trainingjob.Batch{
				Requested: s.Batch.Requested, Initial: s.Batch.Initial, Max: s.Batch.Max, MinPerDevice: s.Batch.MinPerDevice, MaxPerDevice: s.Batch.MaxPerDevice,
			},
		},
	}
	if j.Process.Reports {
		t.Spec.Work = s.TotalWork
	}
	t.Spec.Template.Raw = template
	return t, nil
}
