package report

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const jobsHeader = "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome\n"

// hostile is a name that is markup, from right to left, and ends the element that it is in.
const hostile = `</script><img src=x onerror=alert(1)>"'&` + "\u202e" + `שלום`

// small is a run of two jobs on two nodes, one of them lost for a while.
func small() fstest.MapFS {
	return files(map[string]string{
		"manifest.json": `{"name": "small", "seed": 7, "config": "cluster:\n  nodes: [{name: a, count: 1, accelerator: t4, devices: 2}, {name: b, count: 2, accelerator: v100, devices: 1}]\n",
			"inputs": [], "outputs": []}`,
		"summary.json": `{"schema": "quartet.summary/v1", "name": "small", "components": {"allocation": "allocation/fifo", "elasticity": "elasticity/goodput", "backend": "backend/simulator"},
			"jobs": {"submitted": 2, "completed": 1, "unfinished": 1}, "restarts": {"total": 1}, "gpu_hours": 0.041666666666666664,
			"jct_seconds": {"mean": 100, "p50": null, "p90": null, "p99": null, "max": null}, "queueing_seconds": {"mean": null, "p99": null}, "utilization_ratio": 0.1}`,
		"jobs.csv": jobsHeader +
			"0,first,bert,0,10,100,100,10,2,1,150,completed\n" +
			"1,second,,20,,,,,,0,0,unfinished\n",
		"rounds.csv": "round,time_s,active,waiting,running,devices_used,devices_usable,started,stopped,moved,finished,gap_ratio\n1,10,1,0,1,2,3,1,0,0,0,\n2,50,2,1,1,1,3,0,0,1,0,0.5\n",
		"decisions.jsonl": `{"round":1,"t_s":10,"job":"first","action":"start","replicas":2,"seats":[["a","0,1"]],"batch_per_device":32,"accumulation_steps":0}
{"round":2,"t_s":40,"node":"b-1","event":"node_changed","health":"down"}
{"round":2,"t_s":50,"job":"second","verdict":"defer","reason":"waiting_for_devices","wanted":4,"available":1,"unit":"devices"}
{"round":2,"t_s":50,"job":"first","action":"move","replicas":1,"seats":[["b-0","0"]]}
{"round":3,"t_s":100,"job":"first","event":"job_finished"}
`,
	})
}

func files(texts map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, text := range texts {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func pageOf(t *testing.T, all fs.FS) (*Run, string) {
	t.Helper()
	r, err := ReadRunFS(all, "runs/small")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := WriteRun(&page, r); err != nil {
		t.Fatal(err)
	}
	return r, page.String()
}

func TestDecisionsBecomeStaysAndWaits(t *testing.T) {
	r, _ := pageOf(t, small())
	nan := math.NaN()
	wantStays := []stay{
		{job: 0, start: 10, end: 50, accelerator: "t4", replicas: 2, seats: []seat{{0, 3}}, batch: 32, how: "resized"},
		{job: 0, start: 50, end: 100, accelerator: "v100", replicas: 1, seats: []seat{{1, 1}}, how: "finished"},
	}
	wantWaits := []wait{
		{0, 0, 10, awaitsRound, nan, nan},
		{1, 20, 50, awaitsRound, nan, nan},
		{1, 50, 100, "waiting_for_devices", 4, 1},
	}
	equalNaN := cmp.Comparer(same)
	if diff := cmp.Diff(wantStays, r.stays, cmp.AllowUnexported(stay{}, seat{}), equalNaN); diff != "" {
		t.Errorf("stays (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantWaits, r.waits, cmp.AllowUnexported(wait{}), equalNaN); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]health{{2, 40, "down"}}, r.healths, cmp.AllowUnexported(health{})); diff != "" {
		t.Errorf("healths (-want +got):\n%s", diff)
	}
}

func TestTimelineTakesThePlaceOfDecisions(t *testing.T) {
	all := small()
	all["timeline.csv"] = &fstest.MapFile{Data: []byte("job,start_s,end_s,accelerator,replicas,nodes,seats,batch_per_device,accumulation_steps,end\n0,10,60,t4+v100,3,2,a:3+b-1:1,16,1,finished\n")}
	all["nodes.csv"] = &fstest.MapFile{Data: []byte("node,accelerator,devices,start_s,end_s,health\na,t4,2,0,100,ready\nb-1,v100,1,0,40,ready\nb-1,v100,1,40,100,draining\n")}
	r, _ := pageOf(t, all)
	want := []stay{{job: 0, start: 10, end: 60, accelerator: "t4+v100", replicas: 3, seats: []seat{{0, 3}, {2, 1}}, batch: 16, passes: 1, how: "finished"}}
	if diff := cmp.Diff(want, r.stays, cmp.AllowUnexported(stay{}, seat{})); diff != "" || !r.exact {
		t.Errorf("stays (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]health{{2, 40, "draining"}}, r.healths, cmp.AllowUnexported(health{})); diff != "" {
		t.Errorf("healths (-want +got):\n%s", diff)
	}
}

func TestPageRepeatsAndTellsWhatIsWrong(t *testing.T) {
	with := func(change func(fstest.MapFS)) fstest.MapFS {
		all := small()
		change(all)
		return all
	}
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"whole":         {small(), []string{"quartet simulate --from runs/small/manifest.json", "2 t4 on 1 node, 2 v100 on 2 nodes", "1 job never got devices", "too low to compare"}},
		"no jobs":       {with(func(f fstest.MapFS) { f["jobs.csv"].Data = []byte(jobsHeader); delete(f, "decisions.jsonl") }), []string{"The run has no jobs.", "decisions.jsonl is not there."}},
		"one job":       {with(func(f fstest.MapFS) { f["jobs.csv"].Data = []byte(jobsHeader + "0,a,,0,0,1,1,0,1,0,1,completed\n") }), []string{"of 1 job is"}},
		"only jobs":     {files(map[string]string{"jobs.csv": jobsHeader + "0,a,,0,0,1,1,0,1,0,1,completed\n"}), []string{"manifest.json is not there.", "summary.json is not there."}},
		"interrupted":   {with(func(f fstest.MapFS) { f["manifest.json"].Data = []byte(`{"name": "x", "interrupted": true}`) }), []string{"The run was interrupted"}},
		"cut JSON":      {with(func(f fstest.MapFS) { f["summary.json"].Data = []byte(`{"name": `) }), []string{"summary.json cannot be read whole"}},
		"cut CSV":       {with(func(f fstest.MapFS) { f["jobs.csv"].Data = []byte(jobsHeader + "0,a,,0,0,1,1,0,1,0,1,completed\n1,b") }), []string{"jobs.csv cannot be read whole"}},
		"empty CSV":     {with(func(f fstest.MapFS) { f["rounds.csv"].Data = nil }), []string{"rounds.csv cannot be read whole"}},
		"no numbers":    {with(func(f fstest.MapFS) { f["jobs.csv"].Data = []byte(jobsHeader + "0,a,,zero,0,1,1,0,1,0,1,completed\n") }), []string{"is no number"}},
		"cut decisions": {with(func(f fstest.MapFS) { f["decisions.jsonl"].Data = []byte(`{"round":1,"t_s":1`) }), []string{"decisions.jsonl cannot be read whole"}},
		"broken config": {with(func(f fstest.MapFS) { f["manifest.json"].Data = []byte(`{"name": "x", "config": "a: ["}`) }), []string{"config in manifest.json cannot be read"}},
		"hostile names": {with(func(f fstest.MapFS) {
			f["jobs.csv"].Data = []byte(strings.ReplaceAll(jobsHeader+"0,first,@,0,0,1,1,0,1,0,1,completed\n", "@", `"`+strings.ReplaceAll(hostile, `"`, `""`)+`"`))
		}), []string{"&lt;/script&gt;"}},
		"very long name": {with(func(f fstest.MapFS) {
			f["jobs.csv"].Data = []byte(jobsHeader + "0," + strings.Repeat("x", 10_000) + ",,0,0,1,1,0,1,0,1,completed\n")
		}), []string{"One job"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, page := pageOf(t, tc.files)
			for _, want := range tc.want {
				if !strings.Contains(page, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			if strings.Contains(page, "<img") {
				t.Error("a text is markup in the page")
			}
			if _, again := pageOf(t, tc.files); again != page {
				t.Error("the same files give other bytes")
			}
		})
	}
}

// unended is the small run before its files have their names.
func unended() fstest.MapFS {
	all := fstest.MapFS{}
	for name, f := range small() {
		switch name {
		case "summary.json", "jobs.csv":
			all["."+name+"-1"] = &fstest.MapFile{}
		default:
			all["."+name+"-1"] = f
		}
	}
	return all
}

func TestRunThatHasNotEnded(t *testing.T) {
	jobs, summary := small()["jobs.csv"].Data, small()["summary.json"].Data
	with := func(all fstest.MapFS, change func(fstest.MapFS)) fstest.MapFS { change(all); return all }
	const killed, goesOn = "The run has not ended, or was killed", "The run has not ended: this is what is known 2 min after it began."
	for name, tc := range map[string]struct {
		files fstest.MapFS
		told  *SoFar
		want  []string
		lacks []string
	}{
		"killed": {unended(), nil, []string{killed, "They come when the run has ended.", "2 t4 on 1 node", "second", "Device timeline"}, []string{"is not there", "cannot be read", "quartet simulate --from", "never got devices"}},
		"killed while it wrote": {
			with(unended(), func(f fstest.MapFS) {
				for _, name := range []string{".decisions.jsonl-1", ".rounds.csv-1"} {
					f[name] = &fstest.MapFile{Data: f[name].Data[:len(f[name].Data)-9]}
				}
			}), nil,
			[]string{killed, "first"},
			[]string{"cannot be read"},
		},
		"killed before it wrote": {files(map[string]string{".jobs.csv-9": "", ".rounds.csv-9": ""}), nil, []string{killed, "The run has no jobs"}, nil},
		"of an earlier version":  {files(map[string]string{".jobs.csv-9": "", ".decisions.jsonl-9": string(small()["decisions.jsonl"].Data)}), nil, []string{killed, "first"}, nil},
		"begun again after it was interrupted": {
			with(unended(), func(f fstest.MapFS) {
				f["manifest.json"] = &fstest.MapFile{Data: []byte(`{"name": "before", "interrupted": true}`)}
				f["jobs.csv"] = &fstest.MapFile{Data: []byte(jobsHeader + "0,old,,0,0,1,1,0,1,0,1,completed\n")}
			}), nil,
			[]string{killed, "<title>small</title>"},
			[]string{"was interrupted"},
		},
		"begun again after it ended": {
			with(unended(), func(f fstest.MapFS) {
				maps.Copy(f, small())
			}), nil,
			[]string{"Another run has begun in this folder and has not ended, or was killed: this is the one before.", "quartet simulate --from"},
			[]string{"They come when"},
		},
		"a file of another name": {with(small(), func(f fstest.MapFS) { f[".jobs.csv-backup"] = &fstest.MapFile{} }), nil, []string{"quartet simulate --from"}, []string{"has not ended"}},
		"told": {
			unended(), &SoFar{NowSeconds: 120, Files: map[string][]byte{"jobs.csv": jobs, "summary.json": summary}},
			[]string{goesOn, "Key figures so far", "allocation/fifo", "2 t4 on 1 node", "Distributions"},
			[]string{"killed", "They come when", "is not there"},
		},
		"told before its first round": {files(map[string]string{".manifest.json-1": "{\"name\": \"x\"}\n"}), &SoFar{NowSeconds: 120, Files: map[string][]byte{"jobs.csv": []byte(jobsHeader)}}, []string{goesOn, "The run has no jobs"}, nil},
		"told, with a timeline that goes on": {
			with(unended(), func(f fstest.MapFS) {
				f[".timeline.csv-1"] = &fstest.MapFile{Data: []byte("job,start_s,end_s,accelerator,replicas,nodes,seats,batch_per_device,accumulation_steps,end\n")}
			}), &SoFar{NowSeconds: 120, Files: map[string][]byte{"jobs.csv": jobs}},
			[]string{goesOn, "Device timeline", "Reconstructed from decisions.jsonl."},
			nil,
		},
		"a silent scheduler": {unended(), &SoFar{Trouble: "no scheduler is running: nobody serves <it>"}, []string{"The run has not ended: this is what is in its folder. No scheduler is running: nobody serves &lt;it&gt;."}, []string{killed}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := readRun(tc.files, "runs/small", tc.told)
			if err != nil {
				t.Fatal(err)
			}
			for kind, write := range map[string]func(io.Writer) error{"report": r.Write, "live": func(w io.Writer) error { return WriteLive(w, r, 1) }} {
				var made bytes.Buffer
				if err := write(&made); err != nil {
					t.Fatal(err)
				}
				page, _, _ := strings.Cut(made.String(), "<script")
				for _, want := range tc.want {
					if !strings.Contains(page, want) && !slices.Contains(r.Jobs.name, want) {
						t.Errorf("%s: the page does not say %q", kind, want)
					}
				}
				for _, lack := range tc.lacks {
					if strings.Contains(page, lack) {
						t.Errorf("%s: the page says %q", kind, lack)
					}
				}
			}
		})
	}
}

// The stays and curves of a run that goes on reach to the present.
func TestWhatGoesOnReachesToNow(t *testing.T) {
	all := unended()
	all[".decisions.jsonl-1"] = &fstest.MapFile{Data: []byte(`{"round":1,"t_s":10,"job":"first","action":"start","replicas":2,"seats":[["a","0,1"]]}` + "\n")}
	r, err := readRun(all, "small", &SoFar{NowSeconds: 120, Files: map[string][]byte{"jobs.csv": []byte(jobsHeader + "0,first,,0,10,,,10,2,0,220,unfinished\n1,second,,20,,,,,,0,0,unfinished\n")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []stay{{job: 0, start: 10, end: 120, accelerator: "t4", replicas: 2, seats: []seat{{0, 3}}, how: "unfinished"}}
	if diff := cmp.Diff(want, r.stays, cmp.AllowUnexported(stay{}, seat{})); diff != "" {
		t.Errorf("stays (-want +got):\n%s", diff)
	}
	p := r.pack()
	if at, used := p.index["rounds.at"].N, p.index["rounds.used"].N; at != 3 || used != 3 || r.horizon() != 120 {
		t.Errorf("%d moments of %d values until %v, want 3 until 120", at, used, r.horizon())
	}
}

// Of a run that was killed they reach to the last moment that its files tell of.
func TestWhatWasKilledReachesToItsEnd(t *testing.T) {
	all := unended()
	all[".decisions.jsonl-1"] = &fstest.MapFile{Data: []byte(`{"round":1,"t_s":10,"job":"first","action":"start","replicas":2,"seats":[["a","0,1"]]}
{"round":2,"t_s":70,"job":"first","event":"job_finished"}
{"round":2,"t_s":70,"job":"second","action":"start","replicas":1,"seats":[["a","0"]]}
{"round":3,"t_s":95,"job":"third","verdict":"reject","reason":"too_large"}
`)}
	r, err := ReadRunFS(all, "small")
	if err != nil {
		t.Fatal(err)
	}
	want := []stay{
		{job: 0, start: 10, end: 70, accelerator: "t4", replicas: 2, seats: []seat{{0, 3}}, how: "finished"},
		{job: 1, start: 70, end: 95, accelerator: "t4", replicas: 1, seats: []seat{{0, 1}}, how: "unfinished"},
	}
	if diff := cmp.Diff(want, r.stays, cmp.AllowUnexported(stay{}, seat{})); diff != "" || r.horizon() != 95 {
		t.Errorf("stays until %v (-want +got):\n%s", r.horizon(), diff)
	}
	if diff := cmp.Diff([]string{"completed", "unfinished", "rejected"}, r.Jobs.outcome); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	nan := math.NaN()
	if diff := cmp.Diff([][]float64{{10, 70, nan}, {70, nan, nan}}, [][]float64{r.Jobs.first, r.Jobs.finish}, cmp.Comparer(same)); diff != "" {
		t.Errorf("starts and ends (-want +got):\n%s", diff)
	}
}

// A file that is not the one that the run wrote is told, as compare refuses it.
// A file is missing where the manifest names it, not where the run was told to write others.
func TestMissingFilesAreThoseOfTheManifest(t *testing.T) {
	for name, tc := range map[string]struct {
		outputs string // of the manifest
		gone    []string
		want    []string
	}{
		"told to write others": {`[{"file": "jobs.csv"}, {"file": "timeline.csv"}]`, []string{"rounds.csv", "decisions.jsonl"}, []string{"timeline.csv"}},
		"only the summary":     {`[{"file": "summary.json"}]`, []string{"jobs.csv", "rounds.csv", "decisions.jsonl"}, nil},
		"one is lost":          {`[{"file": "jobs.csv"}, {"file": "rounds.csv"}]`, []string{"rounds.csv", "decisions.jsonl"}, []string{"rounds.csv"}},
		"the jobs are lost":    {`[{"file": "jobs.csv"}, {"file": "usage.csv"}]`, []string{"jobs.csv", "rounds.csv", "decisions.jsonl"}, []string{"jobs.csv", "usage.csv"}},
		"all are there":        {`[{"file": "jobs.csv"}, {"file": "rounds.csv"}, {"file": "decisions.jsonl"}]`, nil, nil},
		"nothing is listed":    {`[]`, []string{"rounds.csv"}, []string{"rounds.csv"}},
		"the summary is lost":  {`[{"file": "jobs.csv"}]`, []string{"summary.json", "rounds.csv", "decisions.jsonl"}, []string{"summary.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := small()
			all["manifest.json"].Data = []byte(`{"name": "x", "outputs": ` + strings.ReplaceAll(tc.outputs, `"}`, `", "sha256": "00"}`) + `}`)
			for _, file := range tc.gone {
				delete(all, file)
			}
			r, err := ReadRunFS(all, "runs/x")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, note := range r.Problems {
				if file, missing := strings.CutSuffix(note, " is not there."); missing {
					got = append(got, file)
				}
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(tc.want, got) {
				t.Errorf("missing: %q, want %q", got, tc.want)
			}
			if none := slices.Contains(r.signs(), "The run has no jobs."); none {
				t.Error("a run that did not write its jobs is said to have none")
			}
		})
	}
}

func TestChangedFilesAreTold(t *testing.T) {
	digest := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	all := small()
	manifest := fmt.Sprintf(`{"name": "x", "outputs": [{"file": "jobs.csv", "sha256": %q}, {"file": "rounds.csv", "sha256": %q}, {"file": "decisions.jsonl", "sha256": %q}]}`,
		digest(all["jobs.csv"].Data), digest(all["rounds.csv"].Data), digest(all["decisions.jsonl"].Data))
	all["manifest.json"].Data = []byte(manifest)
	if r, page := pageOf(t, all); strings.Contains(page, "digest is not") {
		t.Errorf("of whole files: %q", r.Notes())
	}
	for _, name := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
		changed := small()
		changed["manifest.json"].Data = []byte(manifest)
		changed[name].Data = changed[name].Data[:bytes.LastIndexByte(changed[name].Data[:len(changed[name].Data)-1], '\n')+1]
		if r, page := pageOf(t, changed); !strings.Contains(page, name+" is not the file that the run wrote: its digest is not that in manifest.json.") {
			t.Errorf("%s without its last line: %q", name, r.Notes())
		}
	}
	changed := small()
	changed["summary.json"].Data = []byte(strings.Replace(string(changed["summary.json"].Data), `"mean": 100`, `"mean": 9`, 1))
	if r, page := pageOf(t, changed); !strings.Contains(page, "summary.json is not that of jobs.csv: jct_seconds.mean is 9, and the jobs come to 100.") {
		t.Errorf("another mean: %q", r.Notes())
	}
}

func TestFolderWithoutARunIsRefused(t *testing.T) {
	if _, err := ReadRunFS(fstest.MapFS{}, "empty"); err == nil || !strings.Contains(err.Error(), "holds no run") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := ReadStudyFS(fstest.MapFS{}, "empty"); err == nil || !strings.Contains(err.Error(), "holds no study") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := ReadRun(t.TempDir() + "/none"); err == nil {
		t.Error("a folder that is not there is read")
	}
}

func TestRunsBesideEachOther(t *testing.T) {
	a, _ := pageOf(t, small())
	other := small()
	other["summary.json"].Data = []byte(strings.ReplaceAll(string(other["summary.json"].Data), `"mean": 100`, `"mean": 50`))
	other["jobs.csv"].Data = append(other["jobs.csv"].Data, "2,third,,30,,,,,,0,0,unfinished\n"...)
	b, _ := pageOf(t, other)
	var page bytes.Buffer
	if err := WriteRuns(&page, []*Run{a, b}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"50 s (-50 %)", "has other jobs than", "small (2: runs/small)"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, n := range []int{0, 1, mostRuns + 1} {
		if err := WriteRuns(&bytes.Buffer{}, make([]*Run, n)); err == nil {
			t.Errorf("%d runs are taken", n)
		}
	}
}

func TestStudyTellsVerdictAndMissingCells(t *testing.T) {
	runs := "run,scheduler,load,replicate,seed,offered_load,outcome,jct_seconds_mean\n"
	for i, scheduler := range []string{"fifo", "srtf"} {
		for k, load := range []string{"0.5", "1"} {
			outcome := "completed"
			if i == 1 && k == 1 {
				outcome = "failed"
			}
			runs += fmt.Sprintf("r%d%d,%s,%s,1,1,0.4,%s,%d\n", i, k, scheduler, load, outcome, 100*(2-i))
		}
	}
	runs += "r9," + strings.ReplaceAll(hostile, `"`, "") + ",0.5,1,1,0.4,completed,5\n"
	stats := "metric,load,scheduler,baseline,n,mean,baseline_mean,change,t_low,t_high,bca_low,bca_high,ratio_of_means,wins,ties,wilcoxon_p,holm_p,looks,method,not_completed,baseline_not_completed\n" +
		"jct_seconds.mean,0.5,srtf,fifo,5,100,200,-0.5,-0.6,-0.4,,,,,,,0.01,1,paired,0,0\n" +
		"jct_seconds.mean,all,srtf,fifo,10,100,200,-0.5,-0.6,-0.4,,,,,,,0.01,1,paired,0,0\n" +
		"jct_seconds.mean,all,las,fifo,10,210,200,0.05,-0.1,0.2,,,,,,,1,1,paired,0,0\n" +
		"jct_seconds.mean,all,few,fifo,2,210,200,0.05,,,,,,,,,,1,values,0,0\n" +
		"jct_seconds.mean,0.5,long,fifo,5,100,200,,,,,,,,,,,1,other_jobs,3,0\n" +
		"jct_seconds.mean,all,long,fifo,10,100,200,,,,,,,,,,,1,other_jobs,3,1\n"
	s, err := ReadStudyFS(files(map[string]string{"runs.csv": runs, "stats.csv": stats}), "studies/five")
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.comparisons()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"jct_seconds.mean of srtf against fifo over 10 workloads: -50 % [-60 %, -40 %].",
		"jct_seconds.mean of las against fifo over 10 workloads: +5 % on average (3.5 min against 3.33 min), but 10 workloads are too few to be sure: -10 % to +20 %.",
		"jct_seconds.mean of few against fifo over 2 workloads: +5 %; too few workloads for an interval.",
		"jct_seconds.mean of long against fifo over 10 workloads: not compared: 3 jobs of long and 1 job of fifo did not complete.",
	}
	if diff := cmp.Diff(want, verdict(list)); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
	missing := s.missingCells()
	if len(missing) != 2 || missing[0] != "srtf, 1, replicate 1 (run r11): failed" || !strings.HasSuffix(missing[1], ", 1: no run") {
		t.Errorf("missing: %q", missing)
	}
	var page bytes.Buffer
	if err := WriteStudy(&page, s); err != nil {
		t.Fatal(err)
	}
	if text := page.String(); strings.Contains(text, "<img") || !strings.Contains(text, "warnings.csv is not there.") || !strings.Contains(text, ">other jobs<") {
		t.Error("a text is markup, or a missing file is not told")
	}
}

// An axis of one item is not pooled: what is about the item is about all.
func TestVerdictOfOneWorkload(t *testing.T) {
	runs, where := "run,scheduler,workload,load,replicate,seed,offered_load,outcome,jct_seconds_mean\n", ""
	for i, scheduler := range []string{"fifo", "srtf"} {
		runs += fmt.Sprintf("r%d0,%s,default,0.5,1,1,0.4,completed,1\nr%d1,%s,default,1,1,1,0.4,completed,1\n", i, scheduler, i, scheduler)
	}
	for _, load := range []string{"0.5", "1", "all"} {
		where += "jct_seconds.mean,default," + load + ",srtf,fifo,5,100,200,-0.5,-0.6,-0.4,,,,,,,0.01,1,paired,\n"
	}
	for _, level := range []string{"0.980612", "0.99994"} { // of a metric that decides how many seeds there are
		where += "jct_seconds.mean,default,all,srtf,fifo,5,100,200,-0.5,-0.6,-0.4,,,,,,,0.01,2,paired," + level + "\n"
	}
	stats := "metric,workload,load,scheduler,baseline,n,mean,baseline_mean,change,t_low,t_high,bca_low,bca_high,ratio_of_means,wins,ties,wilcoxon_p,holm_p,looks,method,level\n" + where
	s, err := ReadStudyFS(files(map[string]string{"runs.csv": runs, "stats.csv": stats}), "studies/one")
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.comparisons()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"jct_seconds.mean of srtf against fifo over 5 workloads: -50 % [-60 %, -40 %].",
		"jct_seconds.mean of srtf against fifo over 5 workloads: -50 % [-60 %, -40 %] at 98.06 %.",
		"jct_seconds.mean of srtf against fifo over 5 workloads: -50 % [-60 %, -40 %] at 99.99 %; with all comparisons of the study in mind it may be chance (p = 0.01 after Holm).",
	}
	if diff := cmp.Diff(want, verdict(list)); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
	var page bytes.Buffer
	if err := WriteStudy(&page, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "its interval at 95 %, that of jct_seconds.mean at 98.06 %") {
		t.Error("the page does not say the level of its intervals")
	}
}

func FuzzReadRun(f *testing.F) {
	all := small()
	f.Add(all["manifest.json"].Data, all["jobs.csv"].Data, all["decisions.jsonl"].Data, []byte("job,start_s,end_s,seats\n0,1,2,a:3+b:ffffffffffffffff\n"), []byte("at_s,devices_used\n0,1\n"))
	f.Add([]byte(`{"config": "cluster: {nodes: [{count: 99999999999, devices: -1}]}"}`), []byte("job,name\n-1,a\n1e300,b\n"), []byte(`{"t_s":-1,"job":"a","action":"start","seats":[["x","99"]]}`), []byte("job\n"), []byte("at_s\n"))
	f.Fuzz(func(t *testing.T, manifest, jobs, decisions, timeline, usage []byte) {
		r, err := ReadRunFS(files(map[string]string{"manifest.json": string(manifest), "jobs.csv": string(jobs), "decisions.jsonl": string(decisions), "timeline.csv": string(timeline), "usage.csv": string(usage), "rounds.csv": string(usage), "fairness.csv": string(timeline), "training.csv": string(jobs), "efficiency.csv": string(timeline)}), "x")
		if err != nil {
			return
		}
		if err := WriteRun(&bytes.Buffer{}, r); err != nil {
			t.Error(err)
		}
	})
}

func FuzzReadStudy(f *testing.F) {
	f.Add([]byte("run,a,load,replicate,outcome\nx,1,2,1,completed\n"), []byte("metric,load,a,baseline,n,change,t_low,t_high\njct,all,b,c,5,1,0,2\n"), []byte("figure,metric,a,load,published,ours\nT,jct,1,all,1e300,-1e300\nT,jct,2,1,,5\n"), []byte("axes: {a: [{name: 1, with: {load: [2]}}]}"))
	f.Add([]byte("replicate\n"), []byte("baseline\n"), []byte("published\n"), []byte("axes: {a: [x, {with: {b: {c: d}}}]}"))
	f.Fuzz(func(t *testing.T, runs, stats, published, study []byte) {
		s, err := ReadStudyFS(files(map[string]string{"runs.csv": string(runs), "stats.csv": string(stats), "published.csv": string(published), "study.yaml": string(study)}), "x")
		if err != nil {
			return
		}
		if err := WriteStudy(&bytes.Buffer{}, s); err != nil {
			t.Error(err)
		}
		for _, figure := range s.Figures() {
			if err := Draw(io.Discard, &figure, "svg"); err != nil {
				t.Error(err)
			}
		}
	})
}

// Why nothing is expected of jobs is told where a policy lives in another process: only the config says it.
func TestLivePageSaysWhyThereIsNoForecast(t *testing.T) {
	for name, tc := range map[string]struct {
		pipeline string
		want     bool
	}{
		"no pipeline":               {"", false},
		"policies of the scheduler": {`pipeline: {admission: [{type: accept_all}], allocation: {type: fifo, config: {plugin: x}}}`, false},
		"admission":                 {`pipeline: {admission: [{type: accept_all}, {type: mine, plugin: {on_failure: fail}}]}`, true},
		"allocation":                {`pipeline: {allocation: {type: fifo, isolate: true, plugin: {on_failure: fail}}}`, true},
		"placement":                 {`pipeline: {placement: {type: mine, plugin: {on_failure: fail}}}`, true},
		"elasticity of jobs":        {`pipeline: {elasticity: {job: {type: mine, plugin: {on_failure: fail}}}}`, true},
		"elasticity of the cluster": {`pipeline: {elasticity: {cluster: {type: mine, plugin: {on_failure: fail}}}}`, true},
		"a workload":                {`workload: {type: mine, plugin: {on_failure: fail}}`, false},
		"another form":              {`pipeline: {allocation: fifo}`, false},
		"no config":                 {`: [`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var page bytes.Buffer
			if err := WriteLive(&page, &Run{Manifest: Manifest{Config: tc.pipeline}, rounds: &table{}, byName: map[string]int{}}, 1); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(shown(t, page.String()), "forecasts only with built-in policies"); got != tc.want {
				t.Errorf("the page says why: %v, want %v", got, tc.want)
			}
		})
	}
}
