package kube

import (
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// quietBackend is a backend that leads, to which a test tells what there is. It speaks to no API server.
func quietBackend(t *testing.T) *Backend {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	w, err := newWorld(&Config{}, &clients{Client: new(kubeclient.Client), jobs: new(trainingjob.Client)}, log, false)
	if err != nil {
		t.Fatal(err)
	}
	config := *testConfig()
	config.Workers = 1
	b := &Backend{
		config: config, log: log, clock: realClock{}, term: &lead.Term{Epoch: 4}, world: w, work: newLabour(),
		held: map[core.NodeID]core.DeviceSet{}, holds: map[types.UID][]core.Seat{}, released: map[types.UID]*job{}, behind: map[types.UID]*job{},
		jobs: map[types.UID]*job{}, known: map[types.UID]*job{}, queued: map[types.UID]bool{}, retryAt: inf,
	}
	b.nodes = newNodes(&b.config, func(id core.NodeID) core.DeviceSet { return b.held[id] })
	t.Cleanup(b.work.end)
	return b
}

// plain is a job of one replica.
func plain(name string, edit ...func(*trainingjob.TrainingJob)) *trainingjob.TrainingJob {
	object := &trainingjob.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: types.UID(name), Generation: 1},
		Spec: trainingjob.Spec{
			Replicas: trainingjob.Replicas{Min: 1, Max: 1},
			Template: runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"main","image":"none"}]}}`)},
		},
	}
	for _, e := range edit {
		e(object)
	}
	return object
}

// A scheduler that takes over gives no id that a job has had which is still there.
func TestIDsAreGivenOnce(t *testing.T) {
	seven := int32(7)
	for name, tc := range map[string]struct {
		edit func(*trainingjob.TrainingJob)
		want core.JobID
	}{
		"no job before it":  {func(*trainingjob.TrainingJob) {}, 1},
		"one that goes on":  {func(j *trainingjob.TrainingJob) { j.Status.ID = &seven }, 8},
		"one that ended":    {func(j *trainingjob.TrainingJob) { j.Status.ID, j.Status.State = &seven, trainingjob.Completed }, 8},
		"one without an id": {func(j *trainingjob.TrainingJob) { j.Status.State = trainingjob.Rejected }, 0},
		"one that is deleted": {func(j *trainingjob.TrainingJob) {
			j.Status.ID, j.DeletionTimestamp = &seven, &metav1.Time{}
		}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			b := quietBackend(t)
			b.welcome(plain("before", tc.edit), 0)
			b.welcome(plain("new"), 0)
			if got := b.jobs["new"].id; got != tc.want {
				t.Errorf("the new job has id %d, want %d", got, tc.want)
			}
		})
	}
}
