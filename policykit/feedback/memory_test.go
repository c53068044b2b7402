package feedback

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Queues that take up what another had learned are those, in their order.
func TestTiresiasKeepsItsQueues(t *testing.T) {
	fresh := func(thresholds ...float64) *Queues {
		queues := New(QueuesConfig{Thresholds: thresholds})
		return &queues
	}
	before := fresh(10, 20)
	before.jobs = make([]queued, 5)
	before.join(3, 0)
	before.join(1, 0)
	before.join(4, 2)
	before.jobs[1].forgotten = 7
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	after := fresh(10, 20)
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Lists, after.Lists); diff != "" || after.jobs[1].forgotten != 7 || after.jobs[4].queue != 3 {
		t.Errorf("jobs %+v; queues (-want +got):\n%s", after.jobs, diff)
	}
	for name, bad := range map[string]string{
		"other thresholds": `{"Thresholds":[10],"Queues":[[],[]]}`,
		"a job twice":      `{"Thresholds":[10,20],"Queues":[[1],[1],[]],"Forgotten":[0,0]}`,
		"no such job":      `{"Thresholds":[10,20],"Queues":[[-1],[],[]],"Forgotten":[0]}`,
		"nothing":          ``,
	} {
		untouched := fresh(10, 20)
		if err := untouched.Restore([]byte(bad)); err == nil || len(untouched.jobs) > 0 {
			t.Errorf("%s: error %v, jobs %v", name, err, untouched.jobs)
		}
	}
}
