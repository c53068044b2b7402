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

// stalled reports whether a job has waited for its devices for longer than a start may take.
func (b *Backend) stalled(j *job, state *gang.State, now float64) bool {
	if state.Phase != gang.Queued {
		return false
	}
	j.mutex.Lock()
	timeout, since := j.gang(b.config.StartTimeout).StartTimeout, j.decision().AtSeconds
	j.mutex.Unlock()
	return timeout > 0 && now-since > timeout.Seconds()
}

// giveUp has a job that is stalled give its devices back, or only those that it waits for if its other members can go on. A job
// whose own last run does not end would wait anywhere: it is held back, and others may have the devices meanwhile.
func (b *Backend) giveUp(j *job, state *gang.State, now float64) {
	for _, h := range state.Behind {
		if !h.Foreign && !h.Claim && h.Devices != 0 {
			devices := h.Devices | b.hung[h.UID].devices
			if p := b.world.podOf(h.Namespace, h.Name); p != nil && p.UID == h.UID { // it keeps all of them
				_, all, _ := gang.Assigned(p)
				devices |= all
			}
			b.hung[h.UID] = hung{h.Namespace, h.Name, h.Node, devices}
			b.recount = true
			b.log.Warn("a pod keeps its devices", "pod", h.Namespace+"/"+h.Name, "node", h.Node, "devices", trainingjob.FormatDevices(devices))
		}
	}
	j.mutex.Lock()
	waited := time.Duration((now - j.decision().AtSeconds) * float64(time.Second)).Round(time.Second)
	j.mutex.Unlock()
	message := fmt.Sprintf("its pods waited for their devices for %v: %s", waited, state.Message)
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
	if state.Reason == gang.ReasonLastRun {
		b.holdBack(j, now)
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
