package elastic_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// A job alone takes as long in the pipeline as the reference says, with each batch rule, the batch being changed while it runs.
func TestBatchRulesThroughThePipeline(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "adaptive-batch", "run_times.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	profiles := refdata.Path(t, "data", "pollux-osdi21")
	epochs := map[string]int{"bert": 2, "cifar10": 100, "deepspeech2": 80, "imagenet": 90, "yolov3": 50}
	batch := map[string]int{"bert": 64, "cifar10": 512, "deepspeech2": 160, "imagenet": 320, "yolov3": 64} // that 16 devices can share
	rules := map[string]map[string]any{
		"adabatch x2/20%":     {"rule": "schedule", "parts": 5, "factor": 2.0},
		"smith x5 at 1/3,2/3": {"rule": "schedule", "parts": 3, "factor": 5.0},
		"gns":                 {"rule": "noise"},
		"gns_double":          {"rule": "noise_doubling"},
		"accordion":           {"rule": "critical_regime"},
	}
	for _, row := range rows {
		application, replicas := row["application"].(string), int(row["replicas"].(float64))
		path := filepath.Join(t.TempDir(), "job.csv")
		job := fmt.Sprintf("name,time,application,num_replicas,batch_size\n%s-0,0,%s,%d,%d\n", application, application, replicas, batch[application])
		if err := os.WriteFile(path, []byte(job), 0o600); err != nil {
			t.Fatal(err)
		}
		for column, settings := range rules {
			s := quartet.NewSpec()
			s.Name = "alone"
			s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: (replicas + 3) / 4, Accelerator: "t4", Devices: min(replicas, 4)}}
			s.Workload = quartet.Part{Type: "pollux", Config: map[string]any{"path": path, "profiles": profiles}}
			s.Round = quartet.Round{OnEvents: true}
			s.Pipeline.Allocation.Type = "fifo"
			settings["knowledge"], settings["epochs"] = "oracle", epochs[application]
			s.Pipeline.Elasticity.Job = quartet.Policy{Type: "batch_rule", Config: settings}
			r := doortest.Simulate(t, doortest.Compose(t, quartet.Builtins(), s))
			got, want := float64(r.Summary.MakespanSeconds), row[column].(float64)
			t.Logf("%s on %d devices, %s: %.1f seconds, %+.2f %% off", application, replicas, column, got, 100*(got/want-1))
			if math.Abs(got/want-1) > 0.005 {
				t.Errorf("%s on %d devices, %s: %.1f seconds, want %.1f", application, replicas, column, got, want)
			}
		}
	}
}
