package core_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// A job that has run for 10 s on two devices up to 100 s, and has done 5 at 120 s, when its pause ends, with 2 a second.
func TestAccountsOfAJob(t *testing.T) {
	running := core.Job{
		JobSpec: &core.JobSpec{TotalWork: 20}, State: core.Running, Held: 2,
		AsOfSeconds: 100, Executed: 10, Attained: 20, ProgressAsOf: 120, Progress: 5, ProgressRate: 2,
	}
	waiting := running
	waiting.State, waiting.Held, waiting.ProgressRate = core.Waiting, 0, 0
	for name, tc := range map[string]struct {
		job                                core.Job
		now                                float64
		executed, attained, work, leftOver float64
	}{
		"at the moment":         {running, 100, 10, 20, 5, 15},
		"in its pause":          {running, 110, 20, 40, 5, 15},
		"at the end of it":      {running, 120, 30, 60, 5, 15},
		"later":                 {running, 124, 34, 68, 13, 7},
		"when all work is done": {running, 140, 50, 100, 45, 0},
		"waiting":               {waiting, 140, 10, 20, 5, 15},
	} {
		t.Run(name, func(t *testing.T) {
			j := &tc.job
			got := []float64{j.ExecutedSeconds(tc.now), j.AttainedService(tc.now), j.WorkDone(tc.now), j.RemainingWork(tc.now)}
			if diff := cmp.Diff([]float64{tc.executed, tc.attained, tc.work, tc.leftOver}, got); diff != "" {
				t.Errorf("executed, attained, work done and left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSameConfiguration(t *testing.T) {
	m := core.Measurement{Accelerator: "t4", Nodes: 1, Replicas: 2, PerDevice: 3, PassSeconds: 4, StepSeconds: 5}
	for name, tc := range map[string]struct {
		change func(*core.Measurement)
		want   bool
	}{
		"the same":        {func(*core.Measurement) {}, true},
		"other times":     {func(o *core.Measurement) { o.PassSeconds, o.StepSeconds = 7, 8 }, true},
		"another type":    {func(o *core.Measurement) { o.Accelerator = "v100" }, false},
		"other nodes":     {func(o *core.Measurement) { o.Nodes = 2 }, false},
		"other replicas":  {func(o *core.Measurement) { o.Replicas = 1 }, false},
		"another batch":   {func(o *core.Measurement) { o.PerDevice = 1 }, false},
		"all of it other": {func(o *core.Measurement) { *o = core.Measurement{} }, false},
	} {
		o := m
		tc.change(&o)
		if got := m.SameConfiguration(o); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestTuningEqual(t *testing.T) {
	tuning := core.Tuning{Job: 1, BatchPerDevice: 2, AccumulationSteps: 3, LearningRateFactor: 4, BatchByReplica: []int{5}}
	for name, tc := range map[string]struct {
		change func(*core.Tuning)
		want   bool
	}{
		"the same":              {func(o *core.Tuning) { o.BatchByReplica = []int{5} }, true},
		"another job":           {func(o *core.Tuning) { o.Job = 0 }, false},
		"another batch":         {func(o *core.Tuning) { o.BatchPerDevice = 0 }, false},
		"other steps":           {func(o *core.Tuning) { o.AccumulationSteps = 0 }, false},
		"another learning rate": {func(o *core.Tuning) { o.LearningRateFactor = 0 }, false},
		"another split":         {func(o *core.Tuning) { o.BatchByReplica = []int{6} }, false},
		"another job and split": {func(o *core.Tuning) { o.Job, o.BatchByReplica = 0, nil }, false},
	} {
		o := tuning
		tc.change(&o)
		if got := tuning.Equal(o); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Nodes have two devices. The last curve stands for all further types.
func TestResponseRate(t *testing.T) {
	r := core.Response{Curves: []core.Curve{
		{OneNode: []float64{1, 2}, ManyNodes: []float64{0, 1.5, 3}},
		{OneNode: []float64{10, 20}, ManyNodes: []float64{0, 15, 30}},
	}}
	for _, tc := range []struct {
		t        core.AcceleratorID
		replicas int
		want     float64
	}{
		{0, 0, 0},
		{0, -1, 0},
		{0, 1, 1},
		{0, 2, 2},
		{0, 3, 3},
		{0, 4, 0},
		{1, 1, 10},
		{1, 2, 20},
		{1, 3, 30},
		{2, 3, 30},
		{core.AnyAccelerator, 3, 3},
	} {
		if got := r.Rate(tc.t, tc.replicas, 2); got != tc.want {
			t.Errorf("type %d, %d replicas: %v, want %v", tc.t, tc.replicas, got, tc.want)
		}
	}
	if got := new(core.Response).Rate(0, 1, 2); got != 0 {
		t.Errorf("without curves: %v, want 0", got)
	}
}

func TestUnlikeRateNeedsDevices(t *testing.T) {
	u := core.MixedTypeRates{SingleDeviceRates: []float64{1, 3}, SyncSeconds: []float64{0, 0.25, 0}}
	for _, tc := range []struct {
		devices []int
		want    float64
	}{
		{nil, 0}, {[]int{0, 0}, 0}, {[]int{1, 0}, 1}, {[]int{1, 1}, 2}, {[]int{0, 3}, 9}, {[]int{1, 3}, 0}, {[]int{1, 0, 1}, 0}, {[]int{0, 1, 0}, 3},
	} {
		if got := u.Rate(tc.devices); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.devices, got, tc.want)
		}
	}
}

func TestDiagnosticsAreInOrderOfPosition(t *testing.T) {
	at := func(file string, line, column int) core.Diagnostic {
		return core.Diagnostic{Position: core.Position{File: file, Line: line, Column: column}}
	}
	want := core.Diagnostics{at("a", 1, 9), at("a", 2, 3), at("a", 2, 5), at("a", 10, 1), at("b", 1, 1), at("b", 1, 2)}
	got := slices.Clone(want)
	slices.Reverse(got)
	if err := got.Err(); !errors.As(err, &got) {
		t.Fatalf("error %v, want the problems", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := (core.Diagnostics{}).Err(); err != nil {
		t.Errorf("no problem is the error %v", err)
	}
}

func TestExplain(t *testing.T) {
	for want, v := range map[string]core.Verdict{
		"fragmented":          {Reason: core.Fragmented},
		"fragmented: by luck": {Reason: core.Fragmented, Message: "by luck"},
		"fragmented (wants 8 devices, 2.5 available)":          {Reason: core.Fragmented, Wanted: 8, Available: 2.5, Unit: "devices"},
		"fragmented: by luck (wants 8 devices, 2.5 available)": {Reason: core.Fragmented, Message: "by luck", Wanted: 8, Available: 2.5, Unit: "devices"},
	} {
		if got := v.Explain(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, name := range core.Reasons() {
		if r, ok := core.ParseReason(name); !ok || r.String() != name {
			t.Errorf("reason %q is %v, %v", name, r, ok)
		}
	}
	if r, ok := core.ParseReason("mood"); ok || r != 0 {
		t.Errorf("an unknown reason is %v, %v", r, ok)
	}
}

func TestStreamsOfComponents(t *testing.T) {
	draw := func(seed uint64, id string) uint64 { return core.NewRand(seed, id).Uint64() }
	if first, again := draw(1, "a"), draw(1, "a"); first != again || first == draw(1, "b") || first == draw(2, "a") {
		t.Error("a stream is that of its seed and id, and of no other")
	}
}

func TestDevicesOfANode(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 5: 5, 63: 63, 64: 64, 65: 64} {
		devices := core.FirstDevices(n)
		list := devices.List()
		if devices.Count() != want || len(list) != want {
			t.Errorf("the first %d: %d devices, %v, want %d", n, devices.Count(), list, want)
		}
		for i, d := range list {
			if d != i {
				t.Errorf("the first %d: device %d at %d", n, d, i)
			}
		}
	}
	if got := core.DeviceSet(0b101101).String(); got != "0,2,3,5" {
		t.Errorf("%q, want 0,2,3,5", got)
	}
	c := core.Cluster{Nodes: []core.Node{{Devices: 2}, {Devices: 8}, {Devices: 4}}}
	if got := c.LargestNode(); got != 8 {
		t.Errorf("the largest node has %d devices, want 8", got)
	}
	for h, want := range map[core.Health]string{core.Ready: "ready", core.Down: "down", core.Gone + 1: "unknown(5)"} {
		if got := h.String(); got != want {
			t.Errorf("health %q, want %q", got, want)
		}
	}
}

// A ledger counts right when it goes from a larger cluster to a smaller one and back.
func TestLedgerCounts(t *testing.T) {
	large := &core.Cluster{Nodes: []core.Node{{Devices: 4}, {Devices: 4}, {Devices: 4, Health: core.Down}}}
	small := &core.Cluster{Nodes: []core.Node{{Devices: 2}}}
	var l core.Ledger
	for range 2 {
		l.Reset(large)
		if got := l.Take(1, 3); got != (core.Seat{Node: 1, Devices: 7}) || l.Total() != 5 || l.Free(1) != 1 || l.Free(2) != 0 {
			t.Errorf("took %v, %d left", got, l.Total())
		}
		l.Reset(small)
		if l.Total() != 2 || l.Free(0) != 2 || l.Occupy([]core.Seat{{Node: 1, Devices: 8}}) {
			t.Errorf("%d devices in a cluster of 2, or a node more", l.Total())
		}
	}
}

func TestViewJob(t *testing.T) {
	j := core.NewJob(&core.JobSpec{})
	v := core.View{Jobs: []*core.Job{j, nil}}
	for id, want := range map[core.JobID]*core.Job{-1: nil, 0: j, 1: nil, 2: nil, 3: nil} {
		if got := v.Job(id); got != want {
			t.Errorf("job %d: %p, want %p", id, got, want)
		}
	}
}

// What a rule is broken with is told in words that a reader finds again in the answer.
func TestBrokenRulesTellTheAnswer(t *testing.T) {
	respond := func(change func(*core.Response)) fakes {
		return fakes{fixed: rigid{respond: func(r []core.Response) []core.Response { change(&r[1]); return r }}}
	}
	seated := func(seats ...core.Seat) fakes {
		return fakes{seat: seatFirst{func(s core.Seating) core.Seating { s.Placed[1].Seats = seats; return s }}}
	}
	for name, tc := range map[string]struct {
		fakes fakes
		want  string
	}{
		"a rate":            {respond(func(r *core.Response) { r.Curves = []core.Curve{{}, {ManyNodes: []float64{0, 1, -1}}} }), `for job "b": a rate of -1 with 3 replicas across nodes, accelerator type 1`},
		"the first rate":    {respond(func(r *core.Response) { r.Curves = []core.Curve{{OneNode: []float64{-1}}} }), `for job "b": a rate of -1 with 1 replicas on one node, accelerator type 0`},
		"a rate alone":      {respond(func(r *core.Response) { r.MixedTypes = &core.MixedTypeRates{SingleDeviceRates: []float64{-1}} }), "a rate of -1 alone, accelerator type 0"},
		"synchronisation":   {respond(func(r *core.Response) { r.MixedTypes = &core.MixedTypeRates{SyncSeconds: []float64{0, -2}} }), "synchronisation of -2 s with 2 replicas"},
		"devices not free":  {seated(core.Seat{Node: 0, Devices: 1}, core.Seat{Node: 1, Devices: 4}), `for job "b": seats a[0] b[2] are not all free`},
		"no such node":      {seated(core.Seat{Node: 2, Devices: 3}), "seats node#2[0,1] are not all free"},
		"a node below all":  {seated(core.Seat{Node: -1, Devices: 3}), "seats node#-1[0,1] are not all free"},
		"a seat of nothing": {seated(core.Seat{Node: 1, Devices: 3}, core.Seat{Node: 0}), `a seat on node "a" without devices`},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
			err := core.NewPipeline(twoNodes(), tc.fakes.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(t.Context(), b)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "round 1: component ") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// At the edge of what is allowed.
func TestAnswersAtTheirBounds(t *testing.T) {
	respond := func(change func(*core.Response)) fakes {
		return fakes{fixed: rigid{respond: func(r []core.Response) []core.Response { change(&r[0]); return r }}}
	}
	for name, tc := range map[string]struct {
		fakes fakes
		rule  string
	}{
		"a gap of all":                 {fakes{grant: grantAll{gap: 1}}, ""},
		"a gap of none":                {fakes{grant: grantAll{gap: 0}}, ""},
		"more than the job asked for":  {respond(func(r *core.Response) { r.MaxReplicas = 8 }), ""},
		"more than there are":          {respond(func(r *core.Response) { r.MaxReplicas = 9 }), core.RuleReplicasInRange},
		"a split of a batch of 0":      {fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1, BatchByReplica: []int{9, 0}}}}}, ""},
		"evidence that is large":       {fakes{admit: admitAll{[]core.Verdict{{Job: 0, Code: core.Defer, Reason: core.PolicyDecision, Wanted: math.MaxFloat64}}}}, ""},
		"a negative batch":             {fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1, BatchPerDevice: -1}}}}, core.RuleTuningSane},
		"negative accumulation":        {fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1, AccumulationSteps: -1}}}}, core.RuleTuningSane},
		"an answer for nobody":         {fakes{seat: seatFirst{func(s core.Seating) core.Seating { s.Placed[1].Job = 5; return s }}}, core.RuleAnswerForAsked},
		"one for a job without grant":  {fakes{grant: grantAll{change: func(g []core.Grant) []core.Grant { return g[:1] }}, seat: seatFirst{func(s core.Seating) core.Seating { s.Placed[0].Job = 1; return s }}}, core.RuleAnswerForAsked},
		"a grant of the type it is on": {fakes{grant: grantAll{change: func(g []core.Grant) []core.Grant { g[0].Accelerator = 0; return g }}}, ""},
		"a grant of another type":      {fakes{grant: grantAll{change: func(g []core.Grant) []core.Grant { g[0].Accelerator = 1; return g }}}, core.RuleOneAccelerator},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
			err := core.NewPipeline(twoNodes(), tc.fakes.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(t.Context(), b)
			broken, _ := errors.AsType[*core.InvariantError](err)
			if (err != nil) != (tc.rule != "") || broken != nil && broken.Rule != tc.rule {
				t.Errorf("error %v, want %q broken", err, tc.rule)
			}
		})
	}
}

func TestNearestAtItsBounds(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, tc := range []struct{ name, valid, want string }{
		{long, long[1:] + "y", long[1:] + "y"},
		{long + "x", long, ""},
		{"ab", "cd", ""},
		{"ab", "ac", "ac"},
		{"jct.mean", "jct_seconds.mean", "jct_seconds.mean"},
		{"mean.jct", "jct_seconds.mean", ""},
		{"jct.mean.p50", "jct_seconds.mean", ""},
		{"las", "papers/philly/las.yaml", "papers/philly/las.yaml"},
		{"", "jct_seconds.mean", ""},
		{".", "jct_seconds.mean", ""},
	} {
		if got := core.Nearest(tc.name, []string{tc.valid}); got != tc.want {
			t.Errorf("%q of %q: %q, want %q", tc.name, tc.valid, got, tc.want)
		}
	}
	if got := core.Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of two that are as near, %q, want the first", got)
	}
	if got := core.Nearest("jct.mean", []string{"jct_seconds.restricted_mean", "jct_seconds.mean", "jct_minutes.mean"}); got != "jct_seconds.mean" {
		t.Errorf("of several that have its words, %q, want the first with the fewest others", got)
	}
}

func TestFactoriesDescribeThemselves(t *testing.T) {
	schema := sampleFactory().Schema()
	if schema["title"] != "sample" || schema["description"] != "a sample" {
		t.Errorf("title %v, description %v", schema["title"], schema["description"])
	}
	lease, _ := schema["properties"].(settings)["lease"].(settings)
	if pattern, _ := lease["pattern"].(string); pattern == "" {
		t.Errorf("a duration is described as %v, want a pattern", lease)
	}
}

// quoted are texts of a user's at the length that an error shows.
func TestLongTextsAreCut(t *testing.T) {
	for length, want := range map[int]string{60: strings.Repeat("z", 60) + `"`, 61: strings.Repeat("z", 60) + `"…`} {
		_, problems := sampleFactory().Decode(settings{"queue": strings.Repeat("z", length)})
		if got := fmt.Sprint(problems.Err()); !strings.Contains(got, `"`+want) || strings.Contains(got, want+"…") {
			t.Errorf("%d: %s, want %s", length, got, want)
		}
	}
	if !slices.Contains(core.Reasons(), "fragmented") {
		t.Error("the reasons lack fragmented")
	}
}

// Validate may name the setting that it means; what only looks like it stays a sentence.
func TestProblemsOfValidationNameTheirSetting(t *testing.T) {
	_, got := sampleFactory().Decode(settings{"label": "forbidden", "limits": settings{"least": 1}})
	want := core.Diagnostics{{Path: "limits.least", Summary: "exceeds limits.most"}, {Summary: "this label, sadly: is taken"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type step struct {
	Pause time.Duration `config:"pause" doc:"how long" min:"1s"`
	Kind  string        `config:"kind" doc:"which" enum:"a|b"`
	Name  string        `config:"name" doc:"any"`
	Where struct {
		Node string `config:"node" doc:"name of a node" required:"true"`
	} `config:"where" doc:"place"`
}

type steps struct {
	Steps  []step         `config:"steps" doc:"one after the other"`
	Free   map[string]any `config:"free" doc:"anything"`
	Counts map[string]int `config:"counts" doc:"of no use"`
	Nested nested         `config:"nested" doc:"a list of itself"`
}

type nested []nested

// An element of a list has no defaults: what may not be 0 must be given.
func TestElementsOfAListHaveNoDefaults(t *testing.T) {
	ds := core.Decode(&steps{}, settings{"steps": []any{settings{}}})
	want := core.Diagnostics{
		{Path: "steps[0].pause", Summary: "required but missing", Hint: "how long"},
		{Path: "steps[0].kind", Summary: "required but missing", Hint: "which"},
		{Path: "steps[0].where.node", Summary: "required but missing", Hint: "name of a node"},
	}
	if diff := cmp.Diff(want, ds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fields := core.FieldsOf(&steps{})
	if fields[1].Type != "mapping" || fields[2].Type != "unsupported map[string]int" || !strings.HasPrefix(fields[3].Type, "list of list of ") {
		t.Errorf("types %q, %q and %q", fields[1].Type, fields[2].Type, fields[3].Type)
	}
}

func TestEncodeLeavesOutWhatHasNoKey(t *testing.T) {
	type partly struct {
		Bare   string
		hidden int `config:"hidden"` //nolint:unused // as a config may have it
		Good   int `config:"good"`
	}
	if diff := cmp.Diff(settings{"good": int64(4)}, core.Encode(&partly{Bare: "x", Good: 4})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheLargestWholeNumber(t *testing.T) {
	config, ds := sampleFactory().Decode(settings{"jobs": uint64(math.MaxInt64)})
	if got, ok := config.(*sample); !ok || got.Jobs != math.MaxInt64 {
		t.Errorf("config %+v, problems %v", config, ds)
	}
}

func TestCleanTextAtItsBounds(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abcé", 5, "abcé"}, {"abcé", 4, "a…"}, {"abc" + strings.Repeat(" ", 37), 10, "abc"}, {"abc" + strings.Repeat(" ", 38), 10, "abc…"},
	} {
		if got := core.CleanText(tc.text, tc.limit); got != tc.want {
			t.Errorf("%q in %d bytes: %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
}

// Reports that differ by less than a part of the time agree, however long that is.
func TestReportsAgreeInParts(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []float64
		want  float64
	}{
		"by less": {[]float64{10.2, 10, 10}, 10.2}, "by more": {[]float64{10, 20, 20}, 20},
	} {
		var r core.Reports
		for _, s := range tc.steps {
			r.Add(core.Measurement{PassSeconds: 1, StepSeconds: s})
		}
		if got := r.Correct(core.Measurement{PassSeconds: 1, StepSeconds: tc.steps[0]}); got.StepSeconds != tc.want || got.PassSeconds != 1 {
			t.Errorf("%s: %v s in %v s, want %v s", name, got.PassSeconds, got.StepSeconds, tc.want)
		}
	}
}

// The placer refuses both jobs in the second round, each for a reason of its own.
func TestAStopIsBlamedOnThePlacer(t *testing.T) {
	f := fakes{seat: seatFirst{func(s core.Seating) core.Seating {
		if len(s.Placed) < 3 {
			return s
		}
		return core.Seating{Unseated: []core.Verdict{
			{Job: 2, Code: core.Defer, Reason: core.PolicyDecision}, {Job: 0, Code: core.Defer, Reason: core.Fragmented}, {Job: 1, Code: core.Defer, Reason: core.WaitingForDevices},
		}}
	}}}
	var told recorder
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}, {NowSeconds: 60, Events: []core.Event{submit(2, 60, 2)}}, {NowSeconds: 120}, {NowSeconds: 90},
	}}
	err := core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(t.Context(), b)
	if err == nil || err.Error() != "round 4: backend went back in time from 120 to 90 s" {
		t.Errorf("error %v, want one of the fourth round", err)
	}
	for _, c := range b.applied[2:] {
		if c.Action != core.Stop || c.By != "placement/fake" {
			t.Errorf("%+v, want a stop by the placer", c)
		}
	}
	reasons := map[core.JobID]core.Reason{}
	for _, v := range told.verdicts {
		reasons[v.Job] = v.Reason
	}
	want := map[core.JobID]core.Reason{0: core.Fragmented, 1: core.WaitingForDevices, 2: core.PolicyDecision}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
