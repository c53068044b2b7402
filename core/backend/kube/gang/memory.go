package gang

import (
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Older reports whether a resource version is before another one of the same API server. The empty one is before all.
func Older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return errX != nil && errY == nil
	}
	return x < y
}

// recent holds what calls returned, until looks show as much. An informer is always a little behind, and whoever believes it
// creates again what is there.
type recent[T metav1.Object] struct {
	known map[types.UID]record[T]
	clone func(T) T
}

type record[T metav1.Object] struct {
	object T
	// written: the object was changed since it had its version, and nobody said to which.
	written bool
	gone    bool
}

func newRecent[T metav1.Object](clone func(T) T) recent[T] {
	return recent[T]{known: map[types.UID]record[T]{}, clone: clone}
}

// saw notes an object as a call returned it.
func (r *recent[T]) saw(object T) {
	if known, ok := r.known[object.GetUID()]; !ok || !Older(object.GetResourceVersion(), known.object.GetResourceVersion()) {
		r.known[object.GetUID()] = record[T]{object: object}
	}
}

// wrote notes an object as a call is known to have changed it.
func (r *recent[T]) wrote(object T, change func(T)) {
	object = r.clone(object)
	change(object)
	r.known[object.GetUID()] = record[T]{object: object, written: true}
}

// left notes that an object is gone.
func (r *recent[T]) left(object T) { r.known[object.GetUID()] = record[T]{object: object, gone: true} }

// merge returns a look with what is known better, and forgets what is not. A version of "" is older than anything that is known.
func (r *recent[T]) merge(version string, seen []T) []T {
	var merged []T
	there := map[types.UID]bool{}
	for _, object := range seen {
		uid := object.GetUID()
		there[uid] = true
		known, ok := r.known[uid]
		switch {
		case !ok:
			merged = append(merged, object)
		case known.gone:
		case Older(known.object.GetResourceVersion(), object.GetResourceVersion()),
			!known.written && known.object.GetResourceVersion() == object.GetResourceVersion():
			delete(r.known, uid)
			merged = append(merged, object)
		default:
			merged = append(merged, known.object)
		}
	}
	for uid, known := range r.known {
		switch {
		case there[uid]:
		case known.gone, version != "" && !Older(version, known.object.GetResourceVersion()):
			delete(r.known, uid)
		default:
			merged = append(merged, known.object)
		}
	}
	return merged
}

// memory is what a driver knows of a job and no look tells.
type memory struct {
	sync.Mutex // one at a time drives a job

	pods    recent[*corev1.Pod]
	claims  recent[*resourcev1.ResourceClaim]
	service bool                    // it was created, and no look shows it yet
	bound   map[types.UID]time.Time // when a member was first seen bound, by our clock
	refused *refusal
}

// refusal is what the API server said to a decision.
type refusal struct {
	run, round, epoch int64
	reason, message   string
}

func newMemory() *memory {
	return &memory{
		pods:   newRecent((*corev1.Pod).DeepCopy),
		claims: newRecent((*resourcev1.ResourceClaim).DeepCopy),
		bound:  map[types.UID]time.Time{},
	}
}

// look is what is seen, with what is known better.
func (m *memory) look(seen Look, now time.Time) Look {
	seen.Pods = m.pods.merge(seen.Version, seen.Pods)
	seen.Claims = m.claims.merge(seen.ClaimsVersion, seen.Claims)
	m.service = m.service && !seen.Service
	return m.again(seen, now)
}

// again is a look that was taken before, after calls. It forgets nothing.
func (m *memory) again(look Look, now time.Time) Look {
	look.Pods, look.Claims, look.Service = m.pods.over(look.Pods), m.claims.over(look.Claims), look.Service || m.service
	look.bound = map[types.UID]time.Duration{}
	for _, pod := range look.Pods {
		if !bound(pod) {
			continue
		}
		if _, ok := m.bound[pod.UID]; !ok {
			m.bound[pod.UID] = now
		}
		look.bound[pod.UID] = now.Sub(m.bound[pod.UID])
	}
	for uid := range m.bound {
		if _, ok := look.bound[uid]; !ok {
			delete(m.bound, uid)
		}
	}
	return look
}

// over lays what is known over what was merged before.
func (r *recent[T]) over(merged []T) []T {
	var out []T
	there := map[types.UID]bool{}
	for _, object := range merged {
		uid := object.GetUID()
		there[uid] = true
		if known, ok := r.known[uid]; !ok {
			out = append(out, object)
		} else if !known.gone {
			out = append(out, known.object)
		}
	}
	for uid, known := range r.known {
		if !there[uid] && !known.gone {
			out = append(out, known.object)
		}
	}
	return out
}
