package report

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Node c joins and goes; a job runs already, loses a device, and goes on.
func TestHistoryOfAClusterThatChanges(t *testing.T) {
	decisions := `{"round":1,"t_s":5,"node":"c","event":"node_added","accelerator":"h100","devices":4,"health":"provisioning"}
{"round":1,"t_s":5,"job":"first","event":"job_submitted","replicas":2,"seats":[["c","0,3"]]}
{"round":1,"t_s":6,"job":"first","event":"job_starting","message":"a pod waits"}
{"round":1,"t_s":7,"job":"first","event":"job_started"}
{"round":2,"t_s":20,"job":"first","event":"job_shrunk","replicas":1,"seats":[["c","3"]]}
{"round":2,"t_s":30,"node":"c","event":"node_changed","health":"ready"}
{"round":3,"t_s":90,"node":"c","event":"node_removed"}
{"round":3,"t_s":100,"job":"first","event":"job_finished"}
`
	nodes := "node,accelerator,devices,start_s,end_s,health\na,t4,2,0,100,ready\nc,h100,4,5,30,provisioning\nc,h100,4,30,90,ready\n"
	for name, more := range map[string]string{"from decisions": "", "from nodes.csv, too": nodes} {
		t.Run(name, func(t *testing.T) {
			all := small()
			all["decisions.jsonl"].Data = []byte(decisions)
			if more != "" {
				all["nodes.csv"] = &fstest.MapFile{Data: []byte(more)}
			}
			r, _ := pageOf(t, all)
			stays := []stay{
				{job: 0, start: 5, end: 20, accelerator: "h100", replicas: 2, seats: []seat{{r.node("c"), 9}}, how: "resized"},
				{job: 0, start: 20, end: 100, accelerator: "h100", replicas: 1, seats: []seat{{r.node("c"), 8}}, how: "finished"},
			}
			if diff := cmp.Diff(stays, r.stays, cmp.AllowUnexported(stay{}, seat{})); diff != "" {
				t.Errorf("stays (-want +got):\n%s", diff)
			}
			c := r.node("c")
			want := []health{{c, 0, notJoined}, {c, 5, "provisioning"}, {c, 30, "ready"}, {c, 90, gone}}
			if diff := cmp.Diff(want, r.healths, cmp.AllowUnexported(health{})); diff != "" {
				t.Errorf("healths (-want +got):\n%s", diff)
			}
		})
	}
}
