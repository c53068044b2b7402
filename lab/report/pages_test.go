package report

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shown is what a page says, as text, and what it carries for its charts.
func shown(t *testing.T, page string) string {
	t.Helper()
	_, text, _ := strings.Cut(page, `<main id="main">`)
	text, _, found := strings.Cut(text, "</main>")
	if !found {
		t.Fatal("the page has no main part")
	}
	for _, mark := range [...][2]string{
		{`<td class="([^"]*)">`, " | {$1} "},
		{`<t[dh][^>]*>`, " | "},
		{`<h2[^>]*>`, "\n## "},
		{`<caption>`, "# "},
		{`</(caption|summary|thead)>`, "\n"},
		{`<a href="([^"]*)">`, "[$1] "},
		{`<div class="grid" id="([^"]*)">`, "chart: $1"},
		{`<(canvas|input|noscript)`, "$1: <"},
		{`</?(li|dt|p)[^>]*>`, "\n"},
		{`<dd[^>]*>`, ": "},
		{`<tr[^>]*>`, "\n"},
		{`<[^>]*>`, ""},
		{`[ \n]*\n\s*`, "\n"},
	} {
		text = regexp.MustCompile(mark[0]).ReplaceAllString(text, mark[1])
	}
	var out strings.Builder
	out.WriteString(strings.TrimSpace(html.UnescapeString(text)) + "\n\n")
	columns, values := unpacked(t, page)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&out, "%s: %s\n", name, values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		out.WriteString(name + ":")
		for _, v := range columns[name] {
			out.WriteString(" " + strconv.FormatFloat(v, 'g', 7, 64))
		}
		out.WriteString("\n")
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// full is a run that wrote everything. Its first job is moved, tuned and resized, a node fails, one job is cut off, one never runs.
func full() fstest.MapFS {
	return files(map[string]string{
		"manifest.json": `{"name": "full", "seed": 7, "quartet": "v1.2", "commit": "abc", "go": "go1.26", "config": "cluster:\n  nodes: [{name: a, count: 1, accelerator: t4, devices: 2}, {name: b, count: 2, accelerator: v100, devices: 4}, {name: c, count: 1, accelerator: k80, devices: 1}]\n",
			"inputs": [{"file": "trace.csv", "sha256": "ff00"}], "plugins": [{"name": "mine", "version": "3", "sha256": "0f0f"}]}`,
		"summary.json": `{"schema": "quartet.summary/v1", "name": "other", "seed": 7, "measured": {"first_job": 1, "last_job": 4},
			"components": {"workload": "workload/csv", "admission": ["admission/all", "admission/cap"], "allocation": "allocation/las", "placement": "placement/pack", "elasticity": "elasticity/goodput", "backend": "backend/simulator"},
			"earlier_components": [{"until_round": 1, "admission": ["admission/all"], "allocation": "allocation/fifo", "placement": "placement/first", "elasticity": "elasticity/fixed"}],
			"jobs": {"submitted": 5, "completed": 2, "rejected": 1, "failed": 1, "unfinished": 1}, "jct_seconds": {"mean": 105, "p50": 100, "p90": 110, "p95": 110, "p99": 110, "max": 110},
			"queueing_seconds": {"mean": 43.25, "p99": 90}, "makespan_seconds": 200, "utilization_ratio": 0.5, "gpu_hours": 0.125, "restarts": {"total": 3, "mean": 0.6}, "preemptions": 1,
			"fairness": {"rho_mean": 1.5, "rho_max": 2}, "rounds": 4, "wall_seconds": 1, "decision_seconds": {"mean": 0.002, "p99": 0.01, "max": 0.02, "by_component": [{"component": "allocation/las", "stage": "allocate", "mean": 0.001, "max": 0.0125}]},
			"gap_ratio": {"mean": 0.01, "max": 0.25}, "plugins": [{"component": "allocation/mine", "restarts": 2, "fallback": true, "reason": "it hung"}, {"component": "placement/mine", "fallback": false, "reason": "once"}],
			"accelerators": [{"accelerator": "t4", "devices": 2, "utilization_ratio": 0.75, "gpu_hours": 0.1, "jobs": 2, "starts": 3, "queueing_seconds_mean": 10}]}`,
		"jobs.csv": jobsHeader +
			"0,a,bert,0,10,100,100,10,1.5,1,130,completed\n" +
			"1,b,bert,20,50,130,110,30,4,0,320,completed\n" +
			"2,c,,25,,,,,,0,0,unfinished\n" +
			"3,d,resnet,30,120.25,160,,90.25,1,2,40,failed\n" +
			"4,e,resnet,40,,,,,,0,,rejected\n",
		"rounds.csv": "round,time_s,active,waiting,running,devices_used,devices_usable,started,stopped,moved,finished,gap_ratio\n1,10,1,0,1,2,11,1,0,0,0,\n2,50,2,1,1,5,11,0,0,1,0,0.25\n3,100,2,1,1,4,7,0,0,1,0,0\n4,200,2,1,1,0,7,0,0,1,0,\n",
		"decisions.jsonl": `{"round":1,"t_s":10,"job":"a","action":"start","replicas":2,"seats":[["a","0,1"]],"batch_per_device":32,"accumulation_steps":1}
{"round":1,"t_s":40,"job":"nobody","action":"start","replicas":2,"seats":[["a","0,1"]]}
{"round":2,"t_s":40,"job":"e","verdict":"reject"}
{"round":2,"t_s":40,"node":"b-1","event":"node_changed","health":"down"}
{"round":2,"t_s":45,"job":"a","action":"tune","batch_per_device":16,"accumulation_steps":0}
{"round":2,"t_s":50,"job":"c","verdict":"defer","reason":"waiting_for_devices","wanted":4,"available":1,"unit":"devices"}
{"round":2,"t_s":50,"job":"d","verdict":"defer","reason":"waiting_for_devices","wanted":2,"available":0}
{"round":2,"t_s":50,"job":"b","action":"start","replicas":4,"seats":[["b-0","0,1,2,3"]]}
{"round":2,"t_s":50,"job":"a","action":"move","replicas":1,"seats":[["b-1","0"]]}
{"round":2,"t_s":70,"job":"a","verdict":"defer","reason":"no_more"}
{"round":3,"t_s":100,"job":"a","event":"job_finished"}
{"round":3,"t_s":100,"job":"c","verdict":"defer"}
{"round":4,"t_s":120.25,"job":"d","action":"start","replicas":1,"seats":[["a","0"]]}
{"round":4,"t_s":130,"job":"b","event":"job_finished"}
{"round":4,"t_s":140,"job":"d","action":"stop","reason":"preempted_by_priority"}
{"round":4,"t_s":145,"job":"d","action":"start","replicas":1,"seats":[["a","1"]]}
{"round":4,"t_s":150,"job":"d","event":"job_interrupted"}
{"round":4,"t_s":152,"job":"d","action":"start","replicas":1,"seats":[["a","1"],["b-0","0"]]}
{"round":4,"t_s":160,"job":"d","event":"job_failed"}
{"round":4,"t_s":180,"node":"b-1","event":"node_changed","health":"ready"}
`,
		"timeline.csv": "job,start_s,end_s,accelerator,replicas,nodes,seats,batch_per_device,accumulation_steps,end\n" +
			"0,10,50,t4,2,1,a:3,32,1,resized\n0,50,100,v100,1,1,b-1:1,16,0,finished\n1,50,130,v100,4,1,b-0:f,,,finished\n3,120.25,140,t4,1,1,a:1,8,0,preempted\n3,140,140,t4,1,1,a:1,8,0,moved\n9,0,9,t4,1,1,a:1,8,0,moved\n3,145,160,t4,1,1,a:2,8,0,failed\n",
		"nodes.csv":        "node,accelerator,devices,start_s,end_s,health\na,t4,2,0,200,ready\nb-0,v100,4,0,200,ready\nb-1,v100,4,0,40,ready\nb-1,v100,4,40,180,down\nb-1,v100,4,180,200,ready\nd,p4,2,0,9,draining\n",
		"usage.csv":        "at_s,devices_ready,devices_used,running,waiting,pending,demand,efficiency,goodput\n0,11,0,0,0,1,2,,\n10,11,2,1,0,2,3,0.75,64\n50,7,5,2,2,0,7,0.5,32.5\n100,7,4,1,2,0,6,,\n160,7,0,0,1,0,4,,\n200,11,0,0,1,0,4,,\n",
		"fairness.csv":     "job,rho,exclusive_s\n0,1,50\n1,2,0\n3,1.5,100\n",
		"training.csv":     "job,initial_batch,seconds,batch_mean,efficiency_mean,goodput_mean\n0,32,90,64,0.625,48\n8,1,1,1,1,1\n3,8,34.75,8,1,5\n",
		"efficiency.csv":   "job,at_s,batch,efficiency,goodput\n0,10,128,0.5,0\n0,50,16,0.75,48\n0,100,,,\n3,120.25,8,1,5\n3,140,,,\n3,145,8,1,5\n3,160,,,\n9,160,1,1,1\n,170,1,1,1\n",
		"tenants.csv":      "tenant,jobs,gpu_seconds,jct_mean_s,jct_p99_s,queueing_mean_s,restarts_mean,rho_mean\nx,2,130,100,100,10,0.5,1\n,3,360,110,110,60,1,2\n",
		"accelerators.csv": "job,accelerator,gpu_seconds\n0,t4,80\n",
	})
}

// without are the files of a run but some.
func without(all fstest.MapFS, names ...string) fstest.MapFS {
	for _, name := range names {
		delete(all, name)
	}
	return all
}

// A page says and carries what the files of its run hold: with all files, and with those that every run writes.
func TestPagesOfRuns(t *testing.T) {
	_, page := pageOf(t, full())
	golden(t, "full.txt", shown(t, page))
	r, page := pageOf(t, without(full(), "timeline.csv", "nodes.csv", "usage.csv", "fairness.csv", "training.csv", "efficiency.csv", "tenants.csv", "accelerators.csv"))
	golden(t, "usual.txt", shown(t, page))
	golden(t, "usual-figures.txt", drawnText(r.Figures()))
}

// Runs beside each other, of the same jobs and of others.
func TestPageOfSeveralRuns(t *testing.T) {
	other := without(full(), "usage.csv")
	other["summary.json"].Data = []byte(strings.NewReplacer(`"mean": 105`, `"mean": 84`, "allocation/las", "allocation/srtf", `"utilization_ratio": 0.5`, `"utilization_ratio": 0.625`, `"rho_max": 2`, `"rho_max": 3`).Replace(string(other["summary.json"].Data)))
	larger := full()
	larger["manifest.json"].Data = []byte(strings.NewReplacer(`"full"`, `"larger"`, "k80, devices: 1", "k80, devices: 2").Replace(string(larger["manifest.json"].Data)))
	var runs []*Run
	few := small() // without a summary
	delete(few, "summary.json")
	for _, all := range []fstest.MapFS{full(), other, larger, few} {
		r, err := ReadRunFS(all, "runs/x")
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	var page bytes.Buffer
	if err := WriteRuns(&page, runs); err != nil {
		t.Fatal(err)
	}
	golden(t, "several.txt", shown(t, page.String()))
	golden(t, "several-figures.txt", drawnText(FiguresOfRuns(runs)))
	golden(t, "full-figures.txt", drawnText(FiguresOfRuns(runs[:1])))
}

// drawnText are the lines of figures as text.
func drawnText(list []Figure) string {
	var out strings.Builder
	for _, f := range list {
		fmt.Fprintf(&out, "%s: %q, x %q %s log=%t, y %q %s %q %q\n", f.Name, f.Title, f.XLabel, f.X, f.LogX, f.YLabel, f.Y, f.Ticks, f.Place)
		for _, l := range f.Lines {
			fmt.Fprintf(&out, "  %q colour %d step=%t points=%t hollow=%t\n    x %.7g\n    y %.7g\n    low %.7g high %.7g\n", l.Label, l.Colour, l.Step, l.Points, l.Hollow, l.X, l.Y, l.Low, l.High)
		}
	}
	return out.String()
}

// packedFiles adds tables of all runs of a study.
func packedFiles(t *testing.T, all fstest.MapFS, texts map[string]string) fstest.MapFS {
	t.Helper()
	for name, text := range texts {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := io.WriteString(z, text)
		if err = errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		all[name+".csv.gz"] = &fstest.MapFile{Data: b.Bytes()}
	}
	return all
}

// whole is the folder of a study of three schedulers on two workloads at two loads, two replicates each, of which two runs failed
// and one cell was never there.
func whole(t *testing.T) fstest.MapFS {
	t.Helper()
	runs := "run,workload,scheduler,load,replicate,seed,offered_load,outcome,jct_seconds_mean,jct_seconds_p99,makespan_seconds,fairness_rho_mean\n"
	k := 0
	for w, workload := range []string{"apps", "trace"} {
		for s, scheduler := range []string{"fifo", "las", "srtf"} {
			for l, load := range []string{"0.5", "1"} {
				for replicate := 1; replicate <= 2; replicate++ {
					k++
					if w == 1 && s == 2 && l == 0 {
						continue
					}
					outcome, numbers := "completed", fmt.Sprintf("%d,%d,%d,", 100*(l+1)-20*s+10*w+replicate, 900*(l+1)-100*s+replicate, 5000+k)
					switch {
					case w == 0 && s == 1 && l == 1 && replicate == 2:
						outcome, numbers = "failed", ",,,"
					case w == 1 && s == 1 && l == 1 && replicate == 1:
						outcome, numbers = "failed", ",,,"
					}
					runs += fmt.Sprintf("r%d,%s,%s,%s,%d,%d,0.5,%s,%s\n", k, workload, scheduler, load, replicate, replicate, outcome, numbers)
				}
			}
		}
	}
	all := files(map[string]string{
		"study.yaml": "version: 1\naxes: {workload: [{name: apps}, {name: trace}], scheduler: [{name: fifo}, {name: las}, {name: srtf, with: {load: ['0.5', '1']}}]}\n",
		"runs.csv":   runs,
		"stats.csv": "metric,workload,load,scheduler,baseline,n,mean,baseline_mean,change,t_low,t_high,bca_low,bca_high,ratio_of_means,wins,ties,wilcoxon_p,holm_p,looks,method,not_completed,baseline_not_completed,interval_p,level,left_out\n" +
			"jct_seconds.mean,apps,0.5,las,fifo,5,81,101,-0.04,-0.06,-0.02,,,,,,,0.5,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,apps,1,las,fifo,5,181,201,0.1,0.05,0.15,,,,,,,0.01,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,trace,1,las,fifo,5,,211,,,,,,,,,,,1,other_jobs,2,1,,0.95,0\n" +
			"jct_seconds.mean,apps,0.5,srtf,fifo,5,61,101,-0.4,,,-0.5,-0.3,,,,,0.01,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,apps,1,srtf,fifo,5,161,201,0,-0.1,0.1,,,,,,,1,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,trace,1,srtf,fifo,1,171,211,-0.19,-0.3,-0.1,,,,,,,0.01,1,blocks,0,0,,0.95,0\n" +
			"jct_seconds.mean,apps,all,las,fifo,5,131,151,0.02,-0.01,0.05,,,,,,,1,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,trace,all,las,fifo,5,131,151,0.04,0.01,0.07,,,,,,,1,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,all,1,las,fifo,10,181,201,0.1,0.05,0.15,,,,,,,0.01,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,all,all,las,fifo,10,181,201,0.03,0.01,0.05,,,,,,,0.2,1,paired,0,0,,0.95,0\n" +
			"jct_seconds.mean,all,all,srtf,fifo,10,161,201,-0.25,-0.3,-0.2,,,,,,,0.01,1,paired,0,0,,0.95,2\n" +
			"makespan_seconds,all,all,las,fifo,4,5000,5000,0.5,,,,,,,,,,1,values,0,0,,0.95,0\n" +
			"makespan_seconds,all,all,srtf,fifo,10,4000,5000,-0.2,-0.3,-0.1,,,,,,,0.01,1,paired,0,0,,0.95,0\n" +
			"utilization_ratio,apps,1,las,fifo,10,0.5,0.6,-0.1,-0.2,-0.05,,,,,,,0.01,1,paired,0,0,,0.99,0\n" +
			"utilization_ratio,all,all,las,fifo,10,0.5,0.4,0.25,0.2,0.3,,,,,,,0.01,1,paired,0,0,,0.99,0\n",
		"warnings.csv": "run,workload,scheduler,load,replicate,kind,message\nr8,apps,las,1,2,failed,it hung\nr1,apps,fifo,0.5,1,note,odd\n",
		"published.csv": "figure,metric,workload,scheduler,load,runs,published,ours,difference,ours_low,ours_high\n" +
			"Table 1,jct_seconds.mean,all,fifo,1,4,180,206.5,0.147,190,223\nTable 1,jct_seconds.mean,all,las,1,2,180,,,,\nTable 1,utilization_ratio,all,fifo,1,4,0.5,0.25,-0.5,,\n",
	})
	return packedFiles(t, all, map[string]string{
		"jobs":       "run,job,jct_s\nr3,0,100\nr3,1,300\nr4,0,200\nr7,0,\nr7,1,100\nr15,0,50\nr1,0,7\n",
		"fairness":   "run,job,rho\nr3,0,0.5\nr7,0,2\n",
		"usage":      "run,at_s,devices_used,efficiency,waiting,running,pending\nr3,0,4,,0,2,3\nr3,60.5,0,0.5,1,1,0\nr3,95,0,,0,0,0\nr4,0,9,1,9,9,9\nr7,0,8,0.25,0,1,0\nr7,30,0,,0,0,0\n",
		"timeline":   "run,job,start_s,end_s,replicas,batch_per_device,accumulation_steps\nr3,0,0,10,1,,\nr3,2,0,20,2,32,1\nr3,1,50,90,4,32,0\nr3,1,0,30,2,32,1\nr7,1,5,25,1,64,0\nr4,9,0,900,1,1,1\n",
		"efficiency": "run,job,at_s,batch,efficiency,goodput\nr3,1,0,128,1,0\nr3,0,0,9,1,0\nr3,1,30,,,\nr3,1,50,256,0.5,7\nr4,1,0,9,0.25,0\nr3,1,90,,,\n",
	})
}

// The page of a study says and carries what its tables hold.
func TestPageOfAStudy(t *testing.T) {
	s, page := studyPage(t, whole(t))
	golden(t, "study.txt", shown(t, page))
	golden(t, "study-figures.txt", drawnText(s.Figures()))
	_, page = studyPage(t, files(map[string]string{"runs.csv": "run,scheduler,replicate,seed,offered_load,outcome\nr1,fifo,1,1,,completed\n"}))
	golden(t, "study-bare.txt", shown(t, page))
}
