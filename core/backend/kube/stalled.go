package kube

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// hung is a pod of ours that kept its devices longer than a start waits for them: what runs there may have stopped listening, or
// its node. Its devices are nobody's until it is gone.
type hung struct {
	namespace, name, node string
	devices               core.DeviceSet
}

// starts reports whether a gang is not on its devices yet: it waits for them, for others to make its pods, or for an API server
// that takes no pod or binding of it.
func starts(s *gang.State) bool {
	return s.Phase == gang.Creating || s.Phase == gang.Queued || s.Phase == gang.Binding
}

// waited is for how long this scheduler has seen a job have what is decided, and whether a start may take longer than that. Who leads
// anew, perhaps by another clock, does not know what the job waited for before.
func (b *Backend) waited(j *job, now float64) (waited time.Duration, tooLong bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	waited, timeout := time.Duration((now-max(j.decision().AtSeconds, b.firstLook))*float64(time.Second)), j.startTimeout(b.config.StartTimeout)
	return waited, timeout > 0 && waited > timeout
}

// giveUp has a job that waited too long give its devices back, or only those that it waits for if its other members can go on. A job
// that would wait anywhere, for its own last run or for an API server that takes its pods, is held back: others may have the devices
// meanwhile.
func (b *Backend) giveUp(j *job, state *gang.State, waited time.Duration, now float64) {
	for _, h := range state.Behind {
		if !h.Foreign && !h.Claim && h.Devices != 0 {
			devices := h.Devices | b.hung[h.UID].devices
			if p := b.world.podOf(h.Namespace, h.Name); p != nil && p.UID == h.UID { // it keeps all of them
				_, all, _ := gang.Assigned(p)
				devices |= all
			}
			b.hung[h.UID] = hung{h.Namespace, h.Name, h.Node, devices}
			b.recount = true
			b.log.Warn("a pod does not release its devices", "pod", h.Namespace+"/"+h.Name, "node", h.Node, "devices", trainingjob.FormatDevices(devices))
		}
	}
	message := fmt.Sprintf("%s for %v", awaits(state), waited.Round(time.Second))
	if state.Message != "" {
		message += ": " + state.Message
	}
	var left []gang.Seat
	for _, m := range state.Members {
		if m.Phase != gang.Queued && m.Phase != gang.Creating {
			left = append(left, m.Seat)
		}
	}
	if b.shrink(j, left, now, core.CauseStartTimeout, gang.ReasonStartTimeout, message) {
		return
	}
	b.lose(j, now, core.CauseStartTimeout, gang.ReasonStartTimeout, message)
	if state.Reason == gang.ReasonLastRun || state.Phase != gang.Queued && state.Reason != gang.ReasonPodsMissing {
		b.holdBack(j, now)
	}
}

// awaits says what a gang has not got.
func awaits(s *gang.State) string {
	switch {
	case s.Phase == gang.Queued:
		return "its pods waited for their devices"
	case s.Phase == gang.Binding:
		return "the API server did not bind its pods"
	case s.Reason == gang.ReasonPodsMissing:
		return "others did not make its pods"
	default:
		return "the API server did not create its pods"
	}
}

// forgetHung lets go of pods that kept their devices too long and do not any more.
func (b *Backend) forgetHung() {
	for uid, h := range b.hung {
		if p := b.world.podOf(h.namespace, h.name); p == nil || p.UID != uid || gang.Freed(p, b.world.node) {
			delete(b.hung, uid)
			b.recount = true
		}
	}
}

// hungOn are the devices of a node that pods keep which do not end.
func hungOn(pods map[types.UID]hung, node string) (devices core.DeviceSet) {
	for _, h := range pods {
		if h.node == node {
			devices |= h.devices
		}
	}
	return devices
}
