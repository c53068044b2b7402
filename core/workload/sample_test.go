package workload

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// drawnWorkload is a workload of jobs of known duration.
func drawnWorkload(t *rapid.T) *Workload {
	n := rapid.IntRange(1, 60).Draw(t, "jobs")
	jobs := make([]Job, n)
	for i := range jobs {
		submit := rapid.Float64Range(0, 1e5).Draw(t, "submit")
		jobs[i] = newDurationJob(fmt.Sprintf("job-%d", i), submit, rapid.Float64Range(1, 1e4).Draw(t, "seconds"), rapid.IntRange(1, 8).Draw(t, "replicas"))
	}
	w, err := assemble(jobs, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func names(w *Workload) []string {
	list := make([]string, len(w.Jobs))
	for i := range list {
		list[i] = w.Jobs[i].Spec.Name
	}
	return list
}

// sampled is DefaultSample with a change.
func sampled(change func(*Sample)) Sample {
	s := DefaultSample()
	change(&s)
	return s
}

// evenly is a workload with a job each 100 seconds from a moment on.
func evenly(first float64, n int) *Workload {
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = newDurationJob(fmt.Sprintf("job-%d", i), first+100*float64(i), 50, 1)
		jobs[i].Spec.ID = core.JobID(i)
	}
	return &Workload{Jobs: jobs}
}

func TestSample(t *testing.T) {
	type row struct {
		Name   string
		Submit float64
	}
	cases := map[string]struct {
		change func(*Sample)
		want   []row
	}{
		"all of it": {func(*Sample) {}, []row{{"job-0", 50}, {"job-1", 150}, {"job-2", 250}, {"job-3", 350}}},
		"the jobs it has": {
			func(s *Sample) { s.Window.Jobs = 4 },
			[]row{{"job-0", 50}, {"job-1", 150}, {"job-2", 250}, {"job-3", 350}},
		},
		"the first jobs":  {func(s *Sample) { s.Window.Jobs = 2 }, []row{{"job-0", 50}, {"job-1", 150}}},
		"jobs in between": {func(s *Sample) { s.Window = Window{FirstJob: 1, Jobs: 2} }, []row{{"job-1", 0}, {"job-2", 100}}},
		"the last jobs":   {func(s *Sample) { s.Window.FirstJob = 3 }, []row{{"job-3", 0}}},
		"a span":          {func(s *Sample) { s.Window = Window{From: 100 * time.Second, Span: 150 * time.Second} }, []row{{"job-1", 50}}},
		"from a moment":   {func(s *Sample) { s.Window.From = 150 * time.Second }, []row{{"job-1", 0}, {"job-2", 100}, {"job-3", 200}}},
		"a first span":    {func(s *Sample) { s.Window.Span = 151 * time.Second }, []row{{"job-0", 50}, {"job-1", 150}}},
		"a span that ends after the workload": {
			func(s *Sample) { s.Window = Window{From: 300 * time.Second, Span: time.Hour} }, []row{{"job-3", 50}},
		},
		"a span that ends where it is quiet": {
			func(s *Sample) {
				s.Window = Window{From: 140 * time.Second, Span: time.Minute, Quiet: 45 * time.Second}
			},
			[]row{{"job-1", 10}}, // from 140 on, between job 0 and 1, to 200, when job 1 has ended
		},
		"a span that begins where it is quiet": {
			func(s *Sample) { s.Window = Window{From: 180 * time.Second, Quiet: 25 * time.Second} },
			[]row{{"job-2", 50}, {"job-3", 150}},
		},
		"a span that begins where it was quiet": {
			func(s *Sample) { s.Window = Window{From: 170 * time.Second, Quiet: 25 * time.Second} },
			[]row{{"job-1", 0}, {"job-2", 100}, {"job-3", 200}},
		},
		"a span whose quietest begin is after the workload": {
			func(s *Sample) { s.Window = Window{From: 360 * time.Second, Quiet: time.Minute} },
			[]row{{"job-3", 0}},
		},
		"a span whose ends could pass each other": {
			func(s *Sample) {
				s.Window = Window{From: 120 * time.Second, Span: 50 * time.Second, Quiet: 45 * time.Second}
			},
			[]row{{"job-1", 30}}, // between jobs 0 and 1, to when job 1 has ended
		},
		"a span whose end could move before its first job": {
			func(s *Sample) {
				s.Window = Window{From: 140 * time.Second, Span: 20 * time.Second, Quiet: 30 * time.Second}
			},
			[]row{{"job-1", 10}}, // to 190, the last moment, though 130 is as quiet as the begin
		},
		"a span without a job, whose ends may move": {
			func(s *Sample) {
				s.Window = Window{From: 101 * time.Second, Span: 40 * time.Second, Quiet: 10 * time.Second}
			},
			[]row{{"job-1", 49}},
		},
		"twice as dense": {
			func(s *Sample) { s.Load = Load{Factor: 2, By: ByCompression} },
			[]row{{"job-0", 25}, {"job-1", 75}, {"job-2", 125}, {"job-3", 175}},
		},
		"a window, twice as dense": {
			func(s *Sample) { s.Window.FirstJob, s.Load = 2, Load{Factor: 0.5, By: ByCompression} },
			[]row{{"job-2", 0}, {"job-3", 200}},
		},
		"other nodes": {
			func(s *Sample) { s.Load = Load{Factor: 2, By: ByNodes} },
			[]row{{"job-0", 50}, {"job-1", 150}, {"job-2", 250}, {"job-3", 350}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := evenly(50, 4)
			w, err := sampled(tc.change).Apply(source, 1)
			if err != nil {
				t.Fatal(err)
			}
			var got []row
			for i := range w.Jobs {
				spec := &w.Jobs[i].Spec
				if spec.ID != core.JobID(i) {
					t.Errorf("job %d has id %d", i, spec.ID)
				}
				got = append(got, row{spec.Name, spec.SubmitSeconds})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(evenly(50, 4).Jobs, source.Jobs, cmp.AllowUnexported(Job{}, durationModel{})); diff != "" {
				t.Errorf("the workload that was sampled changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSampleTellsWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		change func(*Sample)
		want   string
	}{
		"a window after the last job":  {func(s *Sample) { s.Window.FirstJob = 4 }, "sample.window.first_job: begins with job 4, and the workload ends with job 3"},
		"a window of too many jobs":    {func(s *Sample) { s.Window = Window{FirstJob: 2, Jobs: 3} }, "sample.window.jobs: 3 jobs from job 2 on, and the workload has 2 there; 0 takes all"},
		"a window after the last hour": {func(s *Sample) { s.Window.From = time.Hour }, "sample.window: no job is submitted in it; the workload submits its last job at 5m50s"},
		"a window between jobs":        {func(s *Sample) { s.Window = Window{From: time.Minute, Span: time.Minute} }, "sample.window: no job is submitted in it"},
		"a load that leaves nothing":   {func(s *Sample) { s.Load.Factor = 1e-9 }, "sample.load.factor: leaves none of 4 jobs; take a greater one"},
		"a block of a nanosecond":      {func(s *Sample) { s.Blocks.Length = 1 }, "sample.blocks.length: 1ns makes 450000000000 blocks of a workload that takes 7m30s; 1000000 is the most"},
		"a block longer than all":      {func(s *Sample) { s.Blocks.Length = 2 * time.Hour }, "sample.blocks.length: 2h0m0s is longer than the workload, which takes 7m30s"},
		"a block longer than the window": {
			func(s *Sample) { s.Blocks.Length, s.Window.Span = time.Hour, 5*time.Minute }, "sample.blocks.length: 1h0m0s is longer than the workload, which takes 5m0s",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := sampled(tc.change).Apply(evenly(50, 4), 1)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// Commands would run twice in one folder, and there is nothing to choose from where jobs are yet to be submitted.
func TestSampleRefuses(t *testing.T) {
	commands := evenly(0, 4)
	for i := range commands.Jobs {
		commands.Jobs[i].Spec.Command = []string{"true"}
	}
	cases := map[string]struct {
		workload *Workload
		load     float64
		want     string
	}{
		"commands twice":   {commands, 2, `job "job-0" runs a command, which cannot be repeated`},
		"fewer commands":   {commands, 0.9, ""},
		"jobs yet to come": {&Workload{Open: true}, 0.5, "no jobs of its own"},
		"a name that is taken": {&Workload{Jobs: []Job{
			newDurationJob("a", 0, 1, 1), newDurationJob("a.2", 1, 1, 1),
		}}, 2, `job name "a.2" appears twice`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := sampled(func(s *Sample) { s.Load.Factor = tc.load }).Apply(tc.workload, 1)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLoadsAreNested(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, seed := drawnWorkload(t), rapid.Uint64().Draw(t, "seed")
		low := rapid.Float64Range(0.1, 4).Draw(t, "low")
		high := rapid.Float64Range(low, 5).Draw(t, "high")
		at := func(factor float64) map[string]float64 {
			sample, err := sampled(func(s *Sample) { s.Load.Factor = factor }).Apply(w, seed)
			if err != nil {
				return nil // none is left
			}
			jobs := map[string]float64{}
			for i := range sample.Jobs {
				jobs[sample.Jobs[i].Spec.Name] = sample.Jobs[i].Spec.SubmitSeconds
			}
			return jobs
		}
		dense := at(high)
		for name, submit := range at(low) {
			if there, ok := dense[name]; !ok || there != submit {
				t.Fatalf("job %q at %v comes at %v with a load of %v, %t", name, submit, there, high, ok)
			}
		}
		if whole := at(1); len(whole) != len(w.Jobs) {
			t.Fatalf("%d of %d jobs at a load of 1", len(whole), len(w.Jobs))
		}
	})
}

func TestThinningKeepsTheFactor(t *testing.T) {
	w := evenly(0, 20_000)
	for _, factor := range []float64{0.1, 0.5, 1.5, 3} {
		sample, err := sampled(func(s *Sample) { s.Load.Factor = factor }).Apply(w, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(len(sample.Jobs)) / float64(len(w.Jobs)); math.Abs(got-factor) > 0.02 {
			t.Errorf("a factor of %v leaves %v", factor, got)
		}
		if !inOrder(sample.Jobs, inSubmissionOrder) || sample.Jobs[0].Spec.SubmitSeconds < 0 || lastSubmit(sample.Jobs) > lastSubmit(w.Jobs) {
			t.Errorf("a factor of %v: jobs come from %v to %v, in order %t", factor, sample.Jobs[0].Spec.SubmitSeconds,
				lastSubmit(sample.Jobs), inOrder(sample.Jobs, inSubmissionOrder))
		}
	}
}

func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, seed := drawnWorkload(t), rapid.Uint64().Draw(t, "seed")
		span := impliedSpan(w.Jobs)
		s := sampled(func(s *Sample) {
			s.Blocks.Length = time.Duration(span * rapid.Float64Range(0.05, 1).Draw(t, "share") * 1e9)
		})
		if s.Blocks.Length == 0 {
			t.Skip("the draw is a workload of no time, which has no blocks")
		}
		sample, err := s.Apply(w, seed)
		again, errAgain := s.Apply(w, seed)
		if err != nil {
			return // nothing fell into the blocks
		}
		if diff := cmp.Diff(names(sample), names(again)); diff != "" || errAgain != nil {
			t.Fatalf("the same seed yields others (-once +again):\n%s%v", diff, errAgain)
		}
		if !inOrder(sample.Jobs, inSubmissionOrder) || sample.Jobs[0].Spec.SubmitSeconds < 0 || lastSubmit(sample.Jobs) > span {
			t.Fatalf("jobs come from %v to %v in a workload of %v", sample.Jobs[0].Spec.SubmitSeconds, lastSubmit(sample.Jobs), span)
		}
		seconds := map[string]float64{}
		for i := range w.Jobs {
			seconds[w.Jobs[i].Spec.Name] = w.Jobs[i].Spec.TotalWork
		}
		for i := range sample.Jobs {
			spec := &sample.Jobs[i].Spec
			name, _, _ := strings.Cut(spec.Name, ".b")
			if seconds[name] != spec.TotalWork {
				t.Fatalf("job %q takes %v, %q %v", spec.Name, spec.TotalWork, name, seconds[name])
			}
		}
	})
}

// One block that is as long as the time of evenly spread jobs holds each of them once.
func TestBlocksGoAround(t *testing.T) {
	w := evenly(0, 50)
	sample, err := sampled(func(s *Sample) { s.Blocks.Length = 5000 * time.Second }).Apply(w, 9)
	if err != nil || len(sample.Jobs) != 50 || strings.Contains(strings.Join(names(sample), " "), ".b2") {
		t.Errorf("%d jobs, error %v", len(sample.Jobs), err)
	}
}

// A sample depends on the seed where something is drawn for it.
func TestWhatASampleDraws(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Sample)
		want   bool
	}{
		"the whole":            {func(*Sample) {}, false},
		"a window":             {func(s *Sample) { s.Window.Jobs = 5 }, false},
		"blocks":               {func(s *Sample) { s.Blocks.Length = time.Hour }, true},
		"less":                 {func(s *Sample) { s.Load.Factor = 0.5 }, true},
		"more":                 {func(s *Sample) { s.Load.Factor = 2 }, true},
		"in less time":         {func(s *Sample) { s.Load = Load{Factor: 2, By: ByCompression} }, false},
		"blocks, in less time": {func(s *Sample) { s.Blocks.Length, s.Load = time.Hour, Load{Factor: 2, By: ByCompression} }, true},
	} {
		if got := sampled(tc.change).Draws(); got != tc.want {
			t.Errorf("%s draws: %v, want %v", name, got, tc.want)
		}
	}
}

// A window is given in jobs, in time or not at all, and moves its ends only in time.
func TestWindowsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		window Window
		want   string
	}{
		"none":               {Window{}, ""},
		"in jobs":            {Window{FirstJob: 1, Jobs: 2}, ""},
		"from a job on":      {Window{FirstJob: 1}, ""},
		"in time":            {Window{From: time.Hour, Span: time.Hour, Quiet: time.Minute}, ""},
		"from a moment on":   {Window{From: time.Hour, Quiet: time.Minute}, ""},
		"up to a moment":     {Window{Span: time.Hour}, ""},
		"in both":            {Window{Jobs: 1, Span: time.Hour}, "is given both in jobs and in time"},
		"in both from later": {Window{FirstJob: 1, From: time.Hour}, "is given both in jobs and in time"},
		"that moves, of all": {Window{Quiet: time.Minute}, "moves the ends of a window that is given in time"},
		"that moves in jobs": {Window{Jobs: 1, Quiet: time.Minute}, "moves the ends of a window that is given in time"},
	} {
		if err := tc.window.check().Err(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	if _, err := sampled(func(s *Sample) { s.Window.From = time.Hour }).Apply(&Workload{}, 1); err == nil || !strings.HasSuffix(err.Error(), "the workload has no job") {
		t.Errorf("of an empty workload: error %v", err)
	}
}

// A copy of a job is submitted within half an hour of it, before or after.
func TestCopiesComeNearTheirJobs(t *testing.T) {
	const n = 2000
	w := evenly(0, n)
	sample, err := sampled(func(s *Sample) { s.Load.Factor = 2 }).Apply(w, 5)
	if err != nil {
		t.Fatal(err)
	}
	least, most := 0.0, 0.0
	for i := range sample.Jobs {
		spec := &sample.Jobs[i].Spec
		var original int
		if k, err := fmt.Sscanf(spec.Name, "job-%d.2", &original); k != 1 || err != nil || original < 50 || original > n-50 {
			continue // no copy, or one that may be turned back at an end
		}
		off := spec.SubmitSeconds - w.Jobs[original].Spec.SubmitSeconds
		least, most = min(least, off), max(most, off)
	}
	if least < -copyJitter || most > copyJitter || least > -0.9*copyJitter || most < 0.9*copyJitter {
		t.Errorf("copies come %v to %v s after their jobs, want ±%d", least, most, copyJitter)
	}
}

func TestOfferedLoad(t *testing.T) {
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Devices: 4}}}
	endless := evenly(0, 2)
	endless.Jobs[1].Model = NewDurationModel(math.Inf(1), 1)
	cases := map[string]struct {
		workload *Workload
		want     float64
	}{
		"eleven jobs in a thousand seconds": {evenly(0, 11), 11 * 50 / 4000.0},
		"later":                             {evenly(500, 11), 11 * 50 / 4000.0},
		"at once":                           {evenly(0, 1), math.Inf(1)},
		"none":                              {&Workload{}, math.NaN()},
		"of unknown length":                 {endless, math.NaN()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OfferedLoad(tc.workload, cluster); got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
				t.Errorf("load %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBlockLength(t *testing.T) {
	const day = 24 * time.Hour
	for span, want := range map[time.Duration]time.Duration{
		0:                     0,
		19 * time.Second:      0,
		20 * time.Second:      time.Second,
		20 * time.Minute:      time.Minute,
		50 * time.Minute:      2 * time.Minute,
		20*time.Hour - 1:      59 * time.Minute,
		day:                   time.Hour,
		20*day - time.Second:  23 * time.Hour,
		20 * day:              day,
		365 * day:             day,
		100000 * time.Hour:    day,
		20*time.Second - 1:    0,
		20*time.Minute + 1200: time.Minute,
	} {
		if got := BlockLength(span.Seconds()); got != want {
			t.Errorf("of %v: %v, want %v", span, got, want)
		}
	}
}
