//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/cmd/internal/operate"
)

// frozen is an API server on which nothing happens. It complains of everything that is more than to read.
type frozen struct {
	*testing.T
	objects map[string][]any // by the path of their list; what is left out is empty, but for what may not be read
	refuses string           // part of a path that may not be read
}

func (s *frozen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Query().Get("watch") != "" {
		s.Errorf("who looks asks for %s %s", r.Method, r.URL)
	}
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason, message string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
	}
	if s.refuses != "" && strings.Contains(r.URL.Path, s.refuses) {
		fail(http.StatusForbidden, "Forbidden", `nodes is forbidden: User "vic" cannot list resource "nodes" in API group "" at the cluster scope`)
		return
	}
	kind := map[string][2]string{
		"/api/v1/nodes": {"v1", "NodeList"}, "/api/v1/pods": {"v1", "PodList"}, "/apis/batch/v1/jobs": {"batch/v1", "JobList"},
		"/apis/quartet.sched/v1alpha1/trainingjobs":                   {"quartet.sched/v1alpha1", "TrainingJobList"},
		"/apis/quartet.sched/v1alpha1/namespaces/vision/trainingjobs": {"quartet.sched/v1alpha1", "TrainingJobList"}, "/api/v1/namespaces/vision/pods": {"v1", "PodList"},
	}
	path := strings.Replace(r.URL.Path, "/namespaces/vision/", "/", 1)
	if of, list := kind[r.URL.Path]; list {
		items := s.objects[path]
		if items == nil {
			items = []any{}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": of[0], "kind": of[1], "metadata": map[string]any{"resourceVersion": "9"}, "items": items})
		return
	}
	folder, name := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
	for _, o := range s.objects[folder] {
		if o.(map[string]any)["metadata"].(map[string]any)["name"] == name {
			_ = json.NewEncoder(w).Encode(o)
			return
		}
	}
	fail(http.StatusNotFound, "NotFound", fmt.Sprintf("%q not found", name))
}

// The paths of what a still cluster has.
const (
	stillNodes = "/api/v1/nodes"
	stillJobs  = "/apis/quartet.sched/v1alpha1/trainingjobs"
	stillMaps  = "/api/v1/namespaces/quartet/configmaps"
)

// ago puts moments in the place of AGO with a number of seconds. The run began 10,000 s ago.
func ago(text string) string {
	now := time.Now() //nolint:forbidigo // as the program takes it
	return regexp.MustCompile(`AGO-?\d+`).ReplaceAllStringFunc(text, func(ago string) string {
		seconds, _ := strconv.Atoi(ago[3:])
		return `"` + now.Add(-time.Duration(seconds)*time.Second).UTC().Format(time.RFC3339) + `"`
	})
}

// has gives the cluster the objects of a text by the paths of their lists, and makes it the context "still".
func (s *frozen) has(text string) {
	t := s.T
	t.Helper()
	s.objects = map[string][]any{}
	if err := yaml.Unmarshal([]byte(ago(text)), &s.objects); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := t.TempDir() + "/kubeconfig"
	access := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: still, context: {cluster: c, user: u, namespace: vision}}]\n", server.URL)
	if err := os.WriteFile(config, []byte(access), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
}

func stillNode(name, more string) string {
	return fmt.Sprintf(`  - metadata: {name: %[1]s, uid: %[1]s, resourceVersion: "1", labels: {nvidia.com/gpu.product: a100}}
    spec: {%[2]s}
    status: {capacity: {nvidia.com/gpu: "4"}, allocatable: {nvidia.com/gpu: "4"}, conditions: [{type: Ready, status: "True"}]}
`, name, more)
}

// stillJob is a job of a namespace that was created so many seconds ago.
func stillJob(name string, ago, replicas int, spec, status string) string {
	namespace, short, _ := strings.Cut(name, "/")
	return fmt.Sprintf(`  - apiVersion: quartet.sched/v1alpha1
    kind: TrainingJob
    metadata: {name: %s, namespace: %s, uid: %s-%s, resourceVersion: "1", creationTimestamp: AGO%d}
    spec: {requested: %d, %stemplate: {spec: {containers: [{name: main, image: "t:1"}]}}}
    status: {%s}
`, short, namespace, namespace, short, ago, replicas, spec, status)
}

// stillRuns is the status of a job that has had devices for so many seconds.
func stillRuns(id, seconds int, seats string) string {
	return fmt.Sprintf(`id: %d, state: running, decision: {epoch: 1, round: 3, run: 1, atSeconds: %[2]d, by: placement/packed, seats: %[3]s}, progress: {firstStartSeconds: %[2]d}, conditions: [%[4]s]`,
		id, 10000-seconds, seats, strings.ReplaceAll(condition("Running", "True", "Running", "all run"), "CREATED", "AGO1"))
}

func stillEnded(id, seconds, ago int) string {
	return fmt.Sprintf(`id: %d, state: completed, decision: {epoch: 1, round: 3, run: 1, atSeconds: %d, stop: true}, progress: {firstStartSeconds: 10, executedSeconds: %d, attainedSeconds: %d}, conditions: [%s]`,
		id, 10000-ago, seconds, seconds, strings.ReplaceAll(condition("Finished", "True", "Completed", ""), "CREATED", fmt.Sprintf("AGO%d", ago)))
}

func stillHome() string {
	return stillMaps + ":\n  - metadata: {name: quartet, namespace: quartet}\n    data: {config.yaml: " + strconv.Quote(stillComposition) +
		"}\n  - metadata: {name: quartet-state, namespace: quartet, resourceVersion: \"1\"}\n    data: {epoch: \"1\", holder: x, began: AGO10000}\n"
}

// stillRun is a cluster of two nodes: a job on each, one that waits for both of them, and one that ended.
func stillRun() string {
	return stillNodes + ":\n" + stillNode("a100-0", "") + stillNode("a100-1", "") + stillJobs + ":\n" +
		stillJob("vision/past", 9000, 1, "", stillEnded(0, 1200, 7000)) +
		stillJob("vision/train", 3000, 2, "work: 9000, ", strings.Replace(stillRuns(1, 2900, `[{node: a100-0, devices: "0-1"}]`), "progress: {", "progress: {done: 2900, rate: 1, fromSeconds: 10000, ", 1)) +
		stillJob("speech/other", 2000, 4, "", stillRuns(2, 1900, `[{node: a100-1, devices: "0-3"}]`)) +
		stillJob("vision/big", 1000, 8, "", "id: 3, state: waiting") +
		stillHome()
}

const stillComposition = `version: 1
name: cluster
cluster: {nodes: [{name: any, accelerator: any, devices: 1}]}
workload: {type: submitted}
round: {interval: 10s, on_events: true}
pipeline: {allocation: {type: fifo}}
backend: {type: kubernetes}
`

// Of each job that has not ended a forecast of a cluster says when it starts and ends, with a band, and the notes say what is not known.
func TestForecastOfACluster(t *testing.T) {
	const (
		unjudged   = "no job that was forecast has ended yet: the intervals rest on simulated futures alone"
		unkept     = "how often nodes fail, how long starts take and what jobs measured is not kept: here no node fails, and starts take as long as a simulation has them by default"
		undeclared = " declare no work: how long they take is estimated from jobs before them"
		past       = "jobs that ended and are still there: 1; they show how long others take"
		noPast     = "no job that ended is still there to show how long others take"
	)
	nodes := stillNodes + ":\n" + stillNode("a100-0", "")
	for name, tc := range map[string]struct {
		objects string
		jobs    []string // name, state and position
		notes   []string
	}{
		"jobs in all states": {
			stillRun(), []string{"vision/train running", "speech/other running", "vision/big waiting 1"}, []string{unjudged, "2 of 3 jobs" + undeclared, past, unkept},
		},
		"no jobs": {nodes + stillHome(), nil, []string{unjudged, noPast, unkept}},
		"no scheduler ran yet": {
			nodes + stillJobs + ":\n" + stillJob("vision/first", 20, 4, "", "") + stillJob("vision/second", 10, 4, "work: 100, ", "") +
				strings.Split(stillHome(), "  - metadata: {name: quartet-state")[0],
			[]string{"vision/first running", "vision/second waiting 1"},
			[]string{unjudged, "1 of 2 jobs" + undeclared, noPast, unkept},
		},
		"a job that is too large for the nodes that are there": {
			nodes + stillJobs + ":\n" + stillJob("vision/first", 20, 4, "work: 100, ", "") + stillJob("vision/large", 10, 5, "work: 100, ", "") + stillHome(),
			[]string{"vision/first running", "vision/large waiting 1 never"},
			[]string{unjudged, "1 of 2 jobs end in fewer than half of the futures that were drawn", noPast, unkept},
		},
		"no node that jobs may be on": {
			stillNodes + ":\n" + stillNode("a100-0", "unschedulable: true") + stillJobs + ":\n" + stillJob("vision/first", 20, 4, "", "") + stillHome(),
			[]string{"vision/first waiting 1 never"},
			[]string{unjudged, "1 of 1 jobs" + undeclared, "1 of 1 jobs end in fewer than half of the futures that were drawn", noPast, unkept},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			s := &frozen{T: t}
			s.has(tc.objects)
			code, stdout, stderr := invoke(t, "forecast", "--context", "still", "-o", "json")
			var f operate.ForecastFile
			if err := json.Unmarshal([]byte(stdout), &f); err != nil || code != 0 {
				t.Fatalf("exit code %d, %v, %s", code, err, stderr)
			}
			var jobs []string
			for _, j := range f.Jobs {
				text := j.Job + " " + j.State
				if j.Position != nil {
					text += fmt.Sprint(" ", *j.Position)
				}
				for _, b := range []*operate.BandFile{j.Start, j.End} {
					switch {
					case b == nil && b == j.Start && j.State == "running":
					case b == nil || b.Low == nil || b.Median == nil:
						text += " never"
					case !(f.AtSeconds <= *b.Low && *b.Low <= *b.Median) || b.High != nil && *b.High < *b.Median:
						t.Errorf("job %s: %v to %v, in the middle %v, at %v s", j.Job, *b.Low, b.High, *b.Median, f.AtSeconds)
					}
				}
				jobs = append(jobs, strings.Replace(text, " never never", " never", 1))
			}
			if diff := cmp.Diff(tc.jobs, jobs); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, f.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(stderr, "as the cluster is now, from 16 simulated futures\n") {
				t.Errorf("%s", stderr)
			}
		})
	}
}

// A what-if of a cluster names the jobs of which the next round decides otherwise, and says what cannot be asked.
func TestWhatIfOfACluster(t *testing.T) {
	const header = "job holds next_round with_the_change\n"
	training := `apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: mine, namespace: speech}
spec: {requested: 1, replicas: {devicesPerReplica: 2}, template: {spec: {containers: [{name: main, image: "t:1"}]}}}
`
	for name, tc := range map[string]struct {
		args         []string
		code         int
		moves, tells string // the first table, and what stderr has
	}{
		"a drain": {
			[]string{"plan", "--drain", "a100-0", "--for", "1h"}, 0, header + "vision/train a100-0:0,1 as it is stop (node_unavailable)", "without and with the change: drain a100-0 for 1h\n",
		},
		"a drain of two": {
			[]string{"plan", "--drain", "a100-0,a100-1"}, 0, header + "vision/train a100-0:0,1 as it is stop (node_unavailable)\nspeech/other a100-1:0,1,2,3 as it is stop (node_unavailable)", "is not kept",
		},
		"more nodes": {[]string{"plan", "--add", "a100=2"}, 0, header + "vision/big as it is start a100-added-0:0,1,2,3 a100-added-1:0,1,2,3", "add a100=2"},
		"another policy": {[]string{"plan", "--policy", "las.yaml"}, 0, header + "vision/train a100-0:0,1 as it is stop (preempted_by_priority)\nspeech/other a100-1:0,1,2,3 as it is stop (preempted_by_priority)\n" +
			"vision/big as it is start a100-0:0,1,2,3 a100-1:0,1,2,3", "policy las.yaml"},
		"a job file":     {[]string{"plan", "--submit", "jobs.yaml"}, 0, "the next round decides the same of every job", "submit jobs.yaml"},
		"a training job": {[]string{"plan", "--submit", "training.yaml", "--drain", "a100-0"}, 0, header + "vision/train a100-0:0,1 as it is stop (node_unavailable)", "drain a100-0; submit training.yaml"},
		"what there is not": {[]string{"plan", "--drain", "a100-9", "--add", "x=2", "--submit", "taken.yaml"}, 2, "", `--add: there is no pool, group or node "x"; valid pools and groups: a100
--drain: there is no node "a100-9"; did you mean "a100-0"? valid nodes: a100-0, a100-1
--submit: there is a job "vision/train" already; give it another name
`},
		"a file that is wrong":     {[]string{"plan", "--submit", "wrong.yaml"}, 2, "", "wrong.yaml:3:31: jobs[0].checkpoint: there is no folder of checkpoints on Kubernetes"},
		"a moment":                 {[]string{"plan", "--drain", "a100-0", "--at", "3h"}, 2, "", "--at: is a moment of a simulation; a cluster is taken as it is now: leave it out\n"},
		"a moment of a forecast":   {[]string{"forecast", "--at", "3h"}, 2, "", "--at: is a moment of a simulation; a cluster is taken as it is now: leave it out\n"},
		"a job by its short name":  {[]string{"forecast", "other"}, 0, "job state position start start_between end end_between after\nspeech/other", "as the cluster is now"},
		"a job that ended":         {[]string{"forecast", "past"}, 2, "", `no job "past" is pending or running; valid jobs: vision/train, speech/other, vision/big, speech/big` + "\n"},
		"a name of two jobs":       {[]string{"forecast", "big"}, 2, "", `several jobs are named "big"; valid jobs: vision/big, speech/big` + "\n"},
		"one that may not look":    {[]string{"forecast"}, 1, "", `list nodes: user "vic" may not list nodes in the whole cluster; an administrator grants it: a cluster role with list of nodes`},
		"one that may not plan so": {[]string{"plan", "--drain", "a100-0"}, 1, "", `list nodes: user "vic" may not list nodes in the whole cluster; an administrator grants it: a cluster role with list of nodes`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for file, text := range map[string]string{
				"jobs.yaml":     "version: 1\njobs:\n  - {name: mine, command: [run], replicas: 2}\n",
				"taken.yaml":    "version: 1\njobs:\n  - {name: train, command: [run]}\n",
				"wrong.yaml":    "version: 1\njobs:\n  - {name: a, command: [run], checkpoint: true}\n",
				"las.yaml":      strings.Replace(stillComposition, "fifo", "las", 1),
				"training.yaml": training,
			} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := &frozen{T: t}
			s.has(stillRun())
			if strings.Contains(name, "may not") {
				s.refuses = stillNodes
			}
			if tc.args[0] == "forecast" {
				s.objects[stillJobs] = append(s.objects[stillJobs], parsedList(t, stillJob("speech/big", 900, 8, "", "id: 4, state: waiting"))...)
			}
			code, stdout, stderr := invoke(t, append(tc.args, "--context", "still")...)
			table, _, _ := strings.Cut(stdout, "\n\n")
			if got := without(table); code != tc.code || !strings.HasPrefix(got, tc.moves) || tc.moves == "" && got != "" || !strings.Contains(stderr, tc.tells) {
				t.Errorf("exit code %d, want %d\n%s\n%s\nwant\n%s\n%s", code, tc.code, got, stderr, tc.moves, tc.tells)
			}
		})
	}
}

// What the scheduler expects of jobs is told in the words of a run. Of one that says nothing nothing is.
func TestOutlooksOfACluster(t *testing.T) {
	t.Chdir(t.TempDir())
	forecast := func(more string) string {
		return `, forecast: {at: AGO60, ` + more + `end: {low: AGO-3600, median: AGO-7200, high: AGO-10800}, judged: 10, held: 8}`
	}
	s := &frozen{T: t}
	s.has(stillJobs + ":\n" +
		stillJob("vision/train", 3000, 2, "", stillRuns(1, 2900, `[{node: a100-0, devices: "0-1"}]`)+forecast("")) +
		stillJob("vision/big", 1000, 8, "", "id: 2, state: waiting"+forecast("position: 3, start: {low: AGO-600, median: AGO-1200}, ")) +
		stillJob("vision/none", 1000, 8, "", "id: 3, state: waiting, forecast: {at: AGO60, position: 4, start: {}, end: {}}") +
		stillJob("vision/silent", 1000, 8, "", "id: 4, state: waiting"))
	spans := regexp.MustCompile(`\b(\d+[dhms]|\d+m?s)( \d+[hms])?( \d+s)?\b|\b\d+ s\b`)
	for name, tc := range map[string]struct {
		args []string
		want []string // lines, without how long it is
	}{
		"jobs": {[]string{"jobs", "-o", "wide"}, []string{
			"1 train running vision 2 SPAN SPAN 0 end in SPAN to SPAN - a100-0:0,1",
			"2 big waiting vision 8 SPAN SPAN 0 start in SPAN or later -",
			"3 none waiting vision 8 SPAN SPAN 0 start unknown -",
			"4 silent waiting vision 8 SPAN SPAN 0 unknown -",
		}},
		"describe": {[]string{"describe", "big"}, []string{
			"start expected in SPAN or later", "position 3", "end expected in SPAN to SPAN", "forecast made SPAN ago. 80 % intervals; so far 8 of 10 were right.",
		}},
		"explain one that runs": {[]string{"explain", "train"}, []string{
			"Expected end: in SPAN to SPAN", "Forecast made SPAN ago. 80 % intervals; so far 8 of 10 were right.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := invoke(t, append(tc.args, "--context", "still")...)
			got := blanks.ReplaceAllString(spans.ReplaceAllString(stdout, "SPAN"), " ")
			for _, line := range tc.want {
				if !strings.Contains(got, line+"\n") && !strings.Contains(got, line+" \n") {
					t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, stderr, got, line)
				}
			}
		})
	}
	code, stdout, stderr := invoke(t, "jobs", "-o", "csv", "--context", "still")
	if !strings.Contains(stdout, "expected_start_low_s,expected_start_s,expected_start_high_s,expected_end_low_s,expected_end_s,expected_end_high_s") || code != 0 {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	s.objects[stillJobs] = s.objects[stillJobs][3:] // of an older scheduler
	if _, stdout, _ := invoke(t, "jobs", "-o", "wide", "--context", "still"); strings.Contains(stdout, "expected") {
		t.Errorf("%s", stdout)
	}
}

func parsedList(t *testing.T, text string) (list []any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(ago(text)), &list); err != nil {
		t.Fatal(err)
	}
	return list
}
