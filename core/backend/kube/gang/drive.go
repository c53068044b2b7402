package gang

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
)

// ErrAgain says that calls failed for now, or that nobody knows whether they worked: look and drive again, a little later.
var ErrAgain = errors.New("look again")

// Driver carries out what is due. It may drive many jobs at the same time.
type Driver struct {
	Client  *kubeclient.Client // of the API server
	Ledger  Ledger             // of the devices that are free
	Options Options            // how devices are found and asked for
	// Fence is asked before each write. What it returns ends the drive, and nothing is written.
	Fence func() error
	// Now is the clock.
	Now func() time.Time
	// Timeout is that of a call; 5 s if 0.
	Timeout time.Duration
	// Workers is how many calls for one job are under way at the same time; 4 if 0.
	Workers int

	mu   sync.Mutex
	jobs map[types.UID]*memory
}

const (
	defaultTimeout = 5 * time.Second
	defaultWorkers = 4
	mostConflicts  = 3  // in one drive; then the next look decides
	mostPasses     = 32 // a drive needs six: pods, claims, allocations, bindings, deletions, finalizers
)

// Drive does what is due for a job, and what is due after that, until there is nothing to do but to look again when something
// changed. The state is what is known then. Errors: that of the fence, of the context, [ErrAgain], or what hinders that
// the job is stopped.
func (d *Driver) Drive(ctx context.Context, job Job, seen Look) (State, error) {
	m := d.memory(job.UID)
	m.Lock()
	defer m.Unlock()
	look := m.look(seen, d.Now())
	if r := m.refused; r != nil && (r.run != job.Run || r.round != job.Round || r.epoch != job.Epoch) {
		m.refused = nil
	}
	conflicts := 0
	for range mostPasses {
		plan := next(&job, look, d.Ledger, d.Options, m.refused != nil)
		if r := m.refused; r != nil && plan.State.Phase == Refused {
			plan.State.Reason, plan.State.Message = r.reason, r.message
		}
		if len(plan.Steps) == 0 {
			return plan.State, nil
		}
		if needs := plan.needs(); len(needs) > 0 && !d.Ledger.Take(needs) {
			continue // somebody was faster: the ledger says who
		}
		if err := ctx.Err(); err != nil {
			return plan.State, err
		}
		more, err := d.takeResults(&job, m, plan.Steps, d.carryOut(ctx, &job, plan.Steps))
		conflicts += more
		look = m.again(look, d.Now())
		if err != nil {
			return plan.State, err
		}
		if conflicts > mostConflicts {
			return plan.State, fmt.Errorf("%s/%s: too many conflicts: %w", job.Namespace, job.Name, ErrAgain)
		}
	}
	return State{}, fmt.Errorf("%s/%s: nothing settles: %w", job.Namespace, job.Name, ErrAgain)
}

// takeResults remembers what became of steps. It returns how many of them found something else than was seen, and what failed for now.
func (d *Driver) takeResults(job *Job, m *memory, steps []Step, results []result) (conflicts int, err error) {
	var problems []error
	for i, r := range results {
		if r.apply(m); r.gone != "" {
			d.Ledger.Release(r.gone)
		}
		switch {
		case r.err == nil:
		case r.refused && !steps[i].lets():
			if m.refused == nil {
				m.refused = &refusal{job.Run, job.Round, job.Epoch, r.reason, r.err.Error()}
			}
		case r.conflict:
			conflicts++
		default:
			problems = append(problems, r.err)
		}
	}
	return conflicts, errors.Join(problems...)
}

// Forget forgets a job that is gone.
func (d *Driver) Forget(job types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.jobs, job)
}

func (d *Driver) memory(job types.UID) *memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs == nil {
		d.jobs = map[types.UID]*memory{}
	}
	if d.jobs[job] == nil {
		d.jobs[job] = newMemory()
	}
	return d.jobs[job]
}

// needs are what has to be taken before the steps of a plan.
func (p *Plan) needs() []Need {
	var needs []Need
	for _, s := range p.Steps {
		if s.Kind == Bind || s.Kind == Allocate {
			needs = append(needs, s.Need)
		}
	}
	return needs
}

// result is what became of a step.
type result struct {
	apply             func(*memory)
	gone              types.UID // a pod that has no devices any more
	err               error
	conflict, refused bool
	reason            string
}

func (d *Driver) carryOut(ctx context.Context, job *Job, steps []Step) []result {
	workers := d.Workers
	if workers == 0 {
		workers = defaultWorkers
	}
	results := make([]result, len(steps))
	var group sync.WaitGroup
	slots := make(chan struct{}, workers)
	for i, s := range steps {
		slots <- struct{}{}
		group.Go(func() {
			results[i] = d.do(ctx, job, s)
			<-slots
		})
	}
	group.Wait()
	return results
}

// do makes a call, and looks at what there is when that turned out to be other than it was seen.
func (d *Driver) do(ctx context.Context, job *Job, s Step) result {
	nothing := func(*memory) {}
	if d.Fence != nil {
		if err := d.Fence(); err != nil {
			return result{apply: nothing, err: fmt.Errorf("%s of %s/%s: %w", s.Kind, job.Namespace, job.Name, err)}
		}
	}
	r, err := d.call(ctx, job, s)
	if r.apply == nil {
		r.apply = nothing
	}
	if err == nil { // r.err may tell of what came after the call
		return r
	}
	switch status := apierrors.APIStatus(nil); {
	case ctx.Err() != nil:
		r.err = ctx.Err()
	case s.Kind == CreateService && apierrors.IsAlreadyExists(err):
		r.apply = func(m *memory) { m.service = true }
	case s.outdated(err):
		return d.reread(ctx, job, s, err)
	case errors.As(err, &status) && refuses(status.Status().Code):
		if r.refused, r.reason, r.err = true, reasonOf(err), err; s.Kind == CreatePod && neverValid(status.Status()) {
			r.reason = ReasonTemplate
		}
	default:
		r.err = fmt.Errorf("%s of %s/%s: %w: %w", s.Kind, job.Namespace, job.Name, err, ErrAgain)
	}
	return r
}

// outdated reports whether an answer says that a step rests on what was otherwise than it was seen.
func (s *Step) outdated(err error) bool {
	switch {
	case s.Kind == CreateService:
		return false
	case apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err):
		return true
	case apierrors.IsNotFound(err):
		return s.Kind != CreatePod && s.Kind != CreateClaim
	default:
		return s.patches() && apierrors.IsInvalid(err)
	}
}

// refuses reports whether an answer says that a call will not do, now or later. 404 is that of a namespace.
func refuses(code int32) bool { return slices.Contains([]int32{400, 403, 404, 405, 413, 422}, code) }

// Reasons of a refusal. Others are those of the API server.
const (
	ReasonRights = "Rights" // we lack rights: it is not the fault of the job
	ReasonTaken  = "NameTaken"
	// ReasonTemplate is of a pod that is none: its template never makes one, whenever it is tried.
	ReasonTemplate = "InvalidTemplate"
)

// neverValid reports whether an answer names the fields by which an object is invalid. Policies of a cluster may answer with the
// same code and reason, but name none, and others may lift them.
func neverValid(s metav1.Status) bool {
	return s.Code == http.StatusUnprocessableEntity && s.Reason == metav1.StatusReasonInvalid && s.Details != nil && len(s.Details.Causes) > 0 &&
		!slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "" || c.Type == "" })
}

var lacksRights = regexp.MustCompile(`User ".*" cannot \w+ resource `)

func reasonOf(err error) string {
	if apierrors.IsForbidden(err) && lacksRights.MatchString(err.Error()) {
		return ReasonRights
	}
	return string(apierrors.ReasonForError(err))
}

func (d *Driver) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := d.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	return context.WithTimeout(ctx, timeout)
}

// dropPatch takes our finalizer off, and others not.
const dropPatch = `{"metadata":{"uid":%q,"$deleteFromPrimitiveList/finalizers":[%q]}}`

// call makes the call of a step once.
func (d *Driver) call(ctx context.Context, job *Job, s Step) (r result, err error) {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	switch s.Kind {
	case CreateService:
		if _, err = d.Client.Services(job.Namespace).Create(ctx, newService(job.Namespace), metav1.CreateOptions{}); err == nil {
			r.apply = func(m *memory) { m.service = true }
		}
	case CreateClaim, Allocate:
		return d.callClaim(ctx, job, s)
	case Delete:
		return d.callDelete(ctx, job, s)
	case Drop:
		return d.callDrop(ctx, job, s)
	case Adopt, Release, Excuse, Disrupt:
		return d.callPatch(ctx, job, s)
	case CreatePod:
		var pod *corev1.Pod
		if pod, err = d.Client.Pods(job.Namespace).Create(ctx, s.Pod, metav1.CreateOptions{}); err == nil {
			r.apply = func(m *memory) { m.pods.saw(pod) }
		}
	case Bind:
		if err = d.Client.Pods(job.Namespace).Bind(ctx, job.newBinding(s.Pod, s.Need.Node), metav1.CreateOptions{}); err == nil {
			r.apply = func(m *memory) { m.pods.wrote(s.Pod, func(p *corev1.Pod) { p.Spec.NodeName = s.Need.Node }) }
		}
	}
	return r, err
}

// callClaim creates a claim, or writes the devices that it gets.
func (d *Driver) callClaim(ctx context.Context, job *Job, s Step) (r result, err error) {
	claims := d.Client.ResourceClaims(job.Namespace)
	var claim *resourcev1.ResourceClaim
	if s.Kind == CreateClaim {
		claim, err = claims.Create(ctx, s.Claim, metav1.CreateOptions{})
	} else {
		claim, err = claims.UpdateStatus(ctx, s.Claim, metav1.UpdateOptions{})
	}
	if err == nil {
		r.apply = func(m *memory) { m.claims.saw(claim) }
	}
	return r, err
}

// callDelete deletes a pod as it was seen.
func (d *Driver) callDelete(ctx context.Context, job *Job, s Step) (r result, err error) {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.Pod.UID}, GracePeriodSeconds: job.grace()}
	if bound(s.Pod) && !final(s.Pod) {
		options.Preconditions.ResourceVersion = &s.Pod.ResourceVersion // it may have ended by itself since it was seen
	}
	if err = d.Client.Pods(job.Namespace).Delete(ctx, s.Pod.Name, options); err != nil {
		return r, err
	}
	if !bound(s.Pod) {
		return d.undo(ctx, job, s), nil
	}
	now := metav1.NewTime(d.Now())
	r.apply = func(m *memory) { m.pods.wrote(s.Pod, func(p *corev1.Pod) { p.DeletionTimestamp = &now }) }
	return r, nil
}

// callDrop takes our finalizer off a pod.
func (d *Driver) callDrop(ctx context.Context, job *Job, s Step) (r result, err error) {
	patch := fmt.Appendf(nil, dropPatch, s.Pod.UID, Finalizer)
	if _, err = d.Client.Pods(job.Namespace).Patch(ctx, s.Pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return r, err
	}
	r.gone = s.Pod.UID
	r.apply = func(m *memory) {
		m.pods.wrote(s.Pod, func(p *corev1.Pod) {
			p.Finalizers = slices.DeleteFunc(slices.Clone(p.Finalizers), func(f string) bool { return f == Finalizer })
		})
	}
	return r, nil
}

// callPatch changes a pod of others.
func (d *Driver) callPatch(ctx context.Context, job *Job, s Step) (r result, err error) {
	var patch []byte
	var subresources []string
	switch s.Kind {
	case Adopt:
		patch, err = job.adoptPatch(s.Pod, s.Seat)
	case Release:
		patch, err = job.releasePatch(s.Pod)
	case Disrupt:
		patch, err = d.disrupted(s.Pod)
		subresources = []string{"status"}
	default:
		patch, err = excusePatch(s.Pod)
	}
	if err != nil {
		return r, err
	}
	pod, err := d.Client.Pods(job.Namespace).Patch(ctx, s.Pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return r, err
	}
	if r.apply = func(m *memory) { m.pods.saw(pod) }; s.Kind == Release {
		r.gone = pod.UID
	}
	return r, nil
}

// patches reports whether a step changes a pod that is there.
func (s *Step) patches() bool {
	return s.Kind == Drop || s.Kind == Adopt || s.Kind == Release || s.Kind == Disrupt || s.Kind == Excuse
}

// lets reports whether a step lets a pod go.
func (s *Step) lets() bool {
	return s.Kind == Delete || s.Kind == Drop || s.Kind == Release || s.Kind == Disrupt || s.Kind == Excuse
}

// undo looks at a pod that was just deleted and was on no node when it was seen. It may have been bound since then, and the
// answer is final: what is deleted is not bound any more.
func (d *Driver) undo(ctx context.Context, job *Job, s Step) result {
	r := d.reread(ctx, job, s, errors.New("it was deleted"))
	r.conflict = false
	if !errors.Is(r.err, ErrAgain) && !r.refused {
		r.err = nil
	}
	return r
}

// reread looks at what a step was about.
func (d *Driver) reread(ctx context.Context, job *Job, s Step, why error) result {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	var r result
	var err error
	if s.Kind == CreateClaim || s.Kind == Allocate && !apierrors.IsNotFound(why) {
		r, err = d.rereadClaim(ctx, job, s, why)
	} else {
		r, err = d.rereadPod(ctx, job, s, why)
	}
	if r.apply == nil {
		r.apply = func(*memory) {}
	}
	if err != nil {
		r.err = fmt.Errorf("%s of %s/%s: %w: %w", s.Kind, job.Namespace, job.Name, err, ErrAgain)
	}
	return r
}

// rereadClaim looks at the claim of a step. The error is that of the look.
func (d *Driver) rereadClaim(ctx context.Context, job *Job, s Step, why error) (r result, err error) {
	claim, err := d.Client.ResourceClaims(job.Namespace).Get(ctx, s.Claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.conflict, r.err = true, why
	case err != nil:
		return r, err
	case s.Kind == CreateClaim: // that it is there was to be reached
		r.apply = func(m *memory) { m.claims.saw(claim) }
	default:
		r.apply, r.conflict, r.err = func(m *memory) { m.claims.saw(claim) }, true, why
	}
	return r, nil
}

// rereadPod looks at the pod of a step. The error is that of the look.
func (d *Driver) rereadPod(ctx context.Context, job *Job, s Step, why error) (r result, err error) {
	pod, err := d.Client.Pods(job.Namespace).Get(ctx, s.Pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if s.Pod.UID != "" {
			r.gone, r.apply = s.Pod.UID, func(m *memory) { m.pods.left(s.Pod) }
		}
		if r.conflict = !s.lets(); r.conflict {
			r.err = why
		}
	case err != nil:
		return r, err
	case !job.has(pod) && job.Adopts != nil: // somebody else's, or another one under its name
		r.gone, r.apply = s.Pod.UID, func(m *memory) { m.pods.left(s.Pod) }
		r.conflict, r.err = true, why
	case !job.has(pod):
		r.refused, r.reason = true, ReasonTaken
		r.err = fmt.Errorf("there is a pod %s/%s already, and it is not of the job", pod.Namespace, pod.Name)
	default:
		another := s.Pod.UID != "" && s.Pod.UID != pod.UID
		r.apply = func(m *memory) {
			if m.pods.saw(pod); another {
				m.pods.left(s.Pod)
			}
		}
		if another {
			r.gone = s.Pod.UID
		}
		if s.Kind != CreatePod {
			r.conflict, r.err = true, why
		}
	}
	return r, nil
}
