package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

const (
	inputTrace  = "name,submit_s,duration_s,replicas,application\na,0,60,1,x\nb,0,60,1,y\n"
	inputSpeeds = "worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\n"
	inputPairs  = inputSpeeds + "t4,x,1,,,10,\nt4,y,1,,,20,\nt4,x,1,y,1,8,12\n"
	inputTimes  = "placement,local_bsz,step_time,sync_time\n1,2,0.5,0\n1,20,2.5,0\n2,2,0.75,0.25\n2,10,1.5,0.5\n12,2,2,1\n12,10,4,1\n"
	inputTraced = "progress,iteration,metric,grad_sqr,grad_var\n100,100,0.5,1,10\n200,200,0.75,2,30\n"
	inputCorner = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,4,1,5,0.25\n8,4,1,9,0.25\n4,16,1,5,1\n4,4,9,13,0.25\n"
)

// inputProfiles are the files of the measured profiles of one application, as the artifact of Pollux has them.
var inputProfiles = map[string]string{
	"profiles/traces/toy/placements.csv": inputTimes, "profiles/traces/toy/validation-10.csv": inputTraced, "profiles/traces/toy/validation-20.csv": inputTraced,
	"profiles/delaunay/toy-points.csv": inputCorner, "profiles/delaunay/toy-simplices.csv": "0,1,2,3\n",
}

// inputSynergy is a table of one model, as fast with whatever it has.
func inputSynergy() string {
	var names, cells strings.Builder
	names.WriteString("cluster_cpus_per_gpu,model,gpus,ideal_cpus_per_gpu,ideal_memory_gb_per_gpu,ideal_storage_mbps_per_gpu,batch,iteration_s_at_proportional,speedup_at_ideal")
	for _, cpus := range []string{"1", "2", "3", "4", "5", "6", "9", "12", "24"} {
		for _, memory := range []string{"20.83", "62.5", "125", "187.5", "250"} {
			names.WriteString(",w_cpu" + cpus + "_mem" + memory)
			cells.WriteString(",1")
		}
	}
	return names.String() + "\n3,toy,1,1,62.5,62.5,512,0.1,1" + cells.String() + "\n"
}

// inputSpeedsOfAll is a table with a speed of every job that Gavel's generator draws.
func inputSpeedsOfAll() string {
	var b strings.Builder
	b.WriteString(inputSpeeds)
	for family, sizes := range map[string][]int{"ResNet-18": {16, 32, 64, 128, 256}, "ResNet-50": {16, 32, 64, 128}, "Transformer": {16, 32, 64, 128, 256}, "LM": {5, 10, 20, 40, 80}, "Recommendation": {512, 1024, 2048, 4096, 8192}} {
		for _, size := range sizes {
			fmt.Fprintf(&b, "v100,%s (batch size %d),1,,,7,\n", family, size)
		}
	}
	return b.String() + "v100,A3C,1,,,7,\nv100,CycleGAN,1,,,7,\n"
}

// fileKeys are the keys of which the value is a file or a folder to read, with what is there, below the folder of the case. All of it is read.
var fileKeys = map[string]struct {
	key, is  string         // and the file or folder that it names
	settings map[string]any // of the same component
	files    map[string]string
}{
	"csv":               {key: "workload csv path", is: "t.csv"},
	"philly":            {key: "workload philly path", is: "p.csv", files: map[string]string{"p.csv": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"}},
	"tiresias":          {key: "workload tiresias path", is: "t.csv", files: map[string]string{"t.csv": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n"}},
	"blox":              {key: "workload blox path", is: "b.csv", files: map[string]string{"b.csv": "job_id,submit_time_s,num_gpus,total_iterations,iteration_time_s\n0,130,1,35.5,1\n"}},
	"shockwave":         {key: "workload shockwave path", is: "s.tsv", files: map[string]string{"s.tsv": "LM (batch size 10)\tpython3 main.py\tlanguage_modeling\t--steps\t1\t134583\t1\tgns\t1\t-1.000000\t1418\t0\n"}},
	"openb":             {key: "workload openb path", is: "o.csv", files: map[string]string{"o.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\nopenb-pod-0000,12000,16384,1,1000,,LS,Running,0,125,2\n"}},
	"muri":              {key: "workload muri path", is: "m.csv", files: map[string]string{"m.csv": "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n7,1,2500,100,vgg16,16,21400,0,214,82,75,66,0\n"}},
	"jobs":              {key: "workload jobs path", is: "j.yaml", files: map[string]string{"j.yaml": "version: 1\njobs: [{name: a, command: [x], seconds: 60}]\n"}},
	"unlike":            {key: "workload unlike_workers path", is: "t.csv", files: map[string]string{"t.csv": "name,submit_s,duration_s,replicas\na,0,60,1\n"}},
	"pollux":            {key: "workload pollux path", is: "w.csv", settings: map[string]any{"profiles": "profiles"}, files: with(inputProfiles, "w.csv", "name,time,application,num_replicas,batch_size\ntoy-0,60,toy,1,15\n")},
	"profiles":          {key: "workload pollux profiles", is: "profiles", settings: map[string]any{"path": "w.csv"}, files: with(inputProfiles, "w.csv", "name,time,application,num_replicas,batch_size\ntoy-0,60,toy,1,15\n")},
	"elastic":           {key: "workload elastic path", is: "w.csv", settings: map[string]any{"profiles": "profiles", "most_devices": 1}, files: with(inputProfiles, "w.csv", "submit_s,application,work_s\n60,toy,80\n")},
	"elastic, profiles": {key: "workload elastic profiles", is: "profiles", settings: map[string]any{"path": "w.csv", "most_devices": 1}, files: with(inputProfiles, "w.csv", "submit_s,application,work_s\n60,toy,80\n")},
	"elasticflow": {key: "workload elasticflow path", is: "w.csv", settings: map[string]any{"profiles": "profiles"}, files: map[string]string{
		"profiles/toy.csv": "global_batch_size,1,2,4,8,16,32,64\n64,5,nan,nan,nan,nan,nan,nan\n", "w.csv": "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\na,1000,300,toy,1090,64,1,60\n",
	}},
	"elasticflow, profiles": {key: "workload elasticflow profiles", is: "profiles", settings: map[string]any{"path": "w.csv"}, files: map[string]string{
		"profiles/toy.csv": "global_batch_size,1,2,4,8,16,32,64\n64,5,nan,nan,nan,nan,nan,nan\n", "w.csv": "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\na,1000,300,toy,1090,64,1,60\n",
	}},
	"sia":           {key: "workload sia path", is: "w.csv", settings: map[string]any{"profiles": "profiles", "accelerators": inputTypes}, files: inputSia},
	"sia, profiles": {key: "workload sia profiles", is: "profiles", settings: map[string]any{"path": "w.csv", "accelerators": inputTypes}, files: inputSia},
	"gavel":         {key: "workload gavel path", is: "w.csv", settings: map[string]any{"throughputs_path": "speeds.csv"}, files: inputGavel},
	"gavel, speeds": {key: "workload gavel throughputs_path", is: "speeds.csv", settings: map[string]any{"path": "w.csv"}, files: inputGavel},
	"gavel, drawn":  {key: "workload gavel_generated throughputs_path", is: "speeds.csv", settings: map[string]any{"jobs": 2}, files: map[string]string{"speeds.csv": inputSpeedsOfAll()}},
	"synergy":       {key: "workload synergy path", is: "w.csv", settings: map[string]any{"models_path": "m.csv"}, files: map[string]string{"w.csv": "1,toy,5,10,1\n", "m.csv": inputSynergy()}},
	"synergy, models": {
		key: "workload synergy models_path", is: "m.csv", settings: map[string]any{"path": "w.csv"}, files: map[string]string{"w.csv": "1,toy,5,10,1\n", "m.csv": inputSynergy()},
	},
	"tuning": {
		key: "workload tuning simulated.profiles", is: "profiles", files: with(inputProfiles, "s.csv", "offset\n0\n1\n"),
		settings: map[string]any{
			"metric": "accuracy", "goal": "maximize", "search.type": "list", "search.config.path": "s.csv", "simulated.application": "toy", "simulated.quality": "offset",
		},
	},
	"history": {
		key: "job goodput history_path", is: "history.yaml", settings: map[string]any{"knowledge": "history", "history_frozen": true},
		files: map[string]string{"t.csv": inputTrace, "history.yaml": "version: 2\nruns: 1\napplications: []\n"},
	},
	"pairs": {
		key: "backend simulator co_location.table", is: "pairs.csv", settings: map[string]any{"co_location.model": "table"},
		files: map[string]string{"t.csv": inputTrace, "pairs.csv": inputPairs},
	},
}

var (
	inputTypes = []any{map[string]any{"name": "t4", "profile": "old"}}
	inputSia   = map[string]string{
		"profiles/toy/placements-old.csv":  inputTimes,
		"profiles/toy/scalability-old.csv": "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,4,2,4,2\n4,8,2,8,2\n4,4,8,6,2\n4,8,8,10,2\n2,4,2,3,1\n2,4,8,4,1\n2,2,2,1,0\n2,2,8,2,0\n",
		"profiles/toy/validation-10.csv":   inputTraced, "profiles/toy/validation-20.csv": inputTraced,
		"w.csv": "name,time,application,num_replicas,batch_size,category\ntoy-0,60,toy,1,10,\n",
	}
	inputGavel = map[string]string{
		"speeds.csv": inputSpeeds + "v100,A3C,1,,,8,\nt4,A3C,1,,,8,\n",
		"w.csv":      "job_id,job_type,scale_factor,duration_v100_s,total_steps,unit_interarrival_after\n1,A3C,1,100,800,1\n",
	}
)

// with is a table of files and one more.
func with(files map[string]string, name, content string) map[string]string {
	all := maps.Clone(files)
	all[name] = content
	return all
}

// Whatever file a config names, the manifest of its run tells, with what was in it.
func TestEveryFileThatAConfigNamesIsAnInput(t *testing.T) {
	for name, tc := range fileKeys {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := tc.files
			if files == nil {
				files = map[string]string{tc.is: inputTrace}
			}
			for file, content := range files {
				put(t, filepath.Join(dir, file), content)
			}
			parts := strings.Fields(tc.key)
			settings := map[string]any{}
			set := func(key string, value any) {
				if text, is := value.(string); is && (files[text] != "" || text == "profiles") {
					value = filepath.Join(dir, text)
				}
				to := settings
				for head, rest, more := strings.Cut(key, "."); more; head, rest, more = strings.Cut(key, ".") {
					inner, _ := to[head].(map[string]any)
					if inner == nil {
						inner = map[string]any{}
						to[head] = inner
					}
					to, key = inner, rest
				}
				to[key] = value
			}
			for key, value := range tc.settings {
				set(key, value)
			}
			set(parts[2], tc.is)
			s := doortest.Small()
			s.Cluster.Nodes = append(s.Cluster.Nodes, quartet.NodeGroup{Name: "v", Count: 1, Accelerator: "v100", Devices: 8}, quartet.NodeGroup{Name: "g", Count: 1, Accelerator: "T4", Devices: 1})
			switch parts[0] {
			case "workload":
				s.Workload = quartet.Part{Type: parts[1], Config: settings}
			case "job":
				s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": filepath.Join(dir, "t.csv")}}
				s.Pipeline.Elasticity.Job = quartet.Policy{Type: parts[1], Config: settings}
			case "backend":
				s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": filepath.Join(dir, "t.csv")}}
				s.Cluster.Sharing = core.TimeSlice.String()
				s.Backend = quartet.Part{Type: parts[1], Config: settings}
			}
			c := doortest.Compose(t, quartet.Builtins(), s)
			c.Dir = filepath.Join(t.TempDir(), "small")
			r := doortest.Simulate(t, c)
			var m quartet.Manifest
			read(t, filepath.Join(r.Dir, quartet.ManifestFile), &m)
			got := map[string]string{}
			for _, in := range m.Inputs {
				if _, twice := got[in.File]; twice {
					t.Errorf("%s is told twice", in.File)
				}
				got[in.File] = in.SHA256
			}
			want := map[string]string{}
			walk := func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				content, err := os.ReadFile(path)
				sum := sha256.Sum256(content)
				want[path] = hex.EncodeToString(sum[:])
				return err
			}
			if err := filepath.WalkDir(dir, walk); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("inputs of the manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// namesFile are the words in which keys tell that they name a file or folder.
var namesFile = regexp.MustCompile(`(?i)\b(file|folder|csv|path)\b`)

// noFiles are keys whose description speaks of files that others name.
var noFiles = []string{"workload elastic arrivals", "workload gavel format", "workload sia accelerators.profile"}

// Every key of a built-in component that names a file is tried above.
func TestEveryKeyThatNamesAFileIsTried(t *testing.T) {
	var tried, found []string
	for _, tc := range fileKeys {
		tried = append(tried, tc.key)
	}
	var look func(at string, fields []core.Field)
	look = func(at string, fields []core.Field) {
		for _, f := range fields {
			if f.Type == "string" && (namesFile.MatchString(f.Doc) || strings.HasSuffix(f.Name, "path")) {
				found = append(found, at+f.Name)
			}
			look(at+f.Name+".", f.Fields)
		}
	}
	c := quartet.Builtins()
	for _, f := range c.Workload {
		look("workload "+f.Type+" ", f.Fields())
	}
	for _, f := range c.Admission {
		look("admission "+f.Type+" ", f.Fields())
	}
	for _, f := range c.Allocation {
		look("allocation "+f.Type+" ", f.Fields())
	}
	for _, f := range c.Placement {
		look("placement "+f.Type+" ", f.Fields())
	}
	for _, f := range c.Elasticity {
		look("job "+f.Type+" ", f.Fields())
	}
	for _, f := range c.Scaler {
		look("cluster "+f.Type+" ", f.Fields())
	}
	for _, f := range c.Backend {
		look("backend "+f.Type+" ", f.Fields())
	}
	found = slices.DeleteFunc(found, func(key string) bool { return slices.Contains(noFiles, key) })
	slices.Sort(tried)
	slices.Sort(found)
	if diff := cmp.Diff(slices.Compact(tried), found); diff != "" {
		t.Errorf("keys that name files (-tried +found):\n%s", diff)
	}
}
