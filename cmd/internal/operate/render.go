package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// jobsTable gives every number as it is.
func jobsTable(jobs []*controlv1.Job) render.Table {
	t := render.Table{}
	for _, name := range []string{
		"id", "job", "tenant", "application", "state", "reason", "requested", "min_replicas", "max_replicas", "replicas", "seats",
		"submit_s", "first_start_s", "finish_s", "executed_s", "gpu_seconds", "restarts", "preemptions", "progress", "total_work",
		"failures", "message",
	} {
		t.Columns = append(t.Columns, render.Column{Name: name})
	}
	more := trialColumns(jobs, false)
	expectedColumns(&more, jobs, false, 0)
	t.Columns = append(t.Columns, more.columns...)
	for _, j := range jobs {
		t.Rows = append(t.Rows, append([]any{
			idOf(j), j.GetName(), j.GetTenant(), j.GetApplication(), j.GetState(), j.GetReason(),
			j.GetRequested(), j.GetMinReplicas(), j.GetMaxReplicas(), held(j), seats(j.GetSeats()),
			orUnknown(j.SubmitSeconds), orUnknown(j.FirstStartSeconds), orUnknown(j.FinishSeconds), j.GetExecutedSeconds(), j.GetAttainedSeconds(),
			j.GetRestarts(), j.GetPreemptions(), j.GetProgress(), totalWork(j), j.GetFailures(), j.GetMessage(),
		}, more.cells(j)...))
	}
	return t
}

// writeJobs words the jobs for people, and gives every number as it is to programs.
func (a *app) writeJobs(jobs []*controlv1.Job, now float64) error {
	if a.Format == render.JSON || a.Format == render.CSV {
		return jobsTable(jobs).Write(a.Stdout, a.Format)
	}
	t := render.Table{Columns: []render.Column{
		{Name: "id", Numeric: true},
		{Name: "job"},
		{Name: "state"},
		{Name: "tenant", Wide: true},
		{Name: "application", Wide: true},
		{Name: "replicas", Numeric: true},
		{Name: "age", Numeric: true, Drop: 2},
		{Name: "ran", Numeric: true, Drop: 3},
		{Name: "restarts", Numeric: true, Wide: true},
	}}
	more, ahead := trialColumns(jobs, true), moreColumns[*controlv1.Job]{}
	expectedColumns(&ahead, jobs, true, now)
	t.Columns = append(append(t.Columns, ahead.columns...), render.Column{Name: "progress", Numeric: true, Drop: 1})
	t.Columns = append(append(t.Columns, more.columns...), render.Column{Name: "where or why not"})
	for _, j := range jobs {
		replicas, where := held(j), seats(j.GetSeats())
		if where == "" {
			replicas, where = int(j.GetRequested()), whyNot(j)
		}
		age := max(now-orUnknown(j.SubmitSeconds), 0) // a clock may have been set back
		if comes(j) {
			age = math.NaN()
		}
		if j.FinishSeconds != nil {
			age = j.GetFinishSeconds() - j.GetSubmitSeconds()
		}
		row := append([]any{
			idOf(j), j.GetName(), j.GetState(), j.GetTenant(), j.GetApplication(), replicas, render.Span(age), render.Span(j.GetExecutedSeconds()),
			j.GetRestarts(),
		}, ahead.cells(j)...)
		row = append(append(row, progressOf(j)), more.cells(j)...)
		t.Rows = append(t.Rows, append(row, where))
	}
	return t.Write(a.Stdout, a.Format)
}

// comes reports whether the moment of submission of a job is known and no round has seen it.
func comes(j *controlv1.Job) bool { return j.GetState() == submittedState && j.SubmitSeconds != nil }

// whyNot is why a job has no devices.
func whyNot(j *controlv1.Job) string {
	switch {
	case comes(j):
		return "comes at " + render.Span(j.GetSubmitSeconds())
	case failure(j) != "":
		return failure(j)
	default:
		return j.GetReason()
	}
}

// writeDescription writes all that is known of a job.
// Pods are those of a job on Kubernetes.
func (a *app) writeDescription(d *controlv1.DescribeResponse, pods []cluster.Pod) error {
	j := d.GetJob()
	table := jobsTable([]*controlv1.Job{j})
	switch a.Format {
	case render.JSON:
		more := []member{
			{"command", nonNil(j.GetCommand())}, {"tuning", tuningOf(j.GetTuning())}, {"measurement", measurementOf(j.GetMeasurement())},
		}
		reports, err := metricsMember(j)
		if err != nil {
			return err
		}
		more = append(more, reports...)
		if a.ByCalendar {
			var text bytes.Buffer
			if err := podsTable(pods).Write(&text, render.JSON); err != nil {
				return err
			}
			more = append(more, member{"pods", json.RawMessage(text.Bytes())})
		}
		return a.writeDocument(table, more, d.GetDecisions())
	case render.CSV:
		fields := render.Table{Columns: []render.Column{{Name: "field"}, {Name: "value"}}}
		for i, c := range table.Columns {
			fields.Rows = append(fields.Rows, []any{c.Name, table.Rows[0][i]})
		}
		return fields.Write(a.Stdout, a.Format)
	}
	if err := a.introduce(d); err != nil {
		return err
	}
	if err := a.writeMetrics(j); err != nil {
		return err
	}
	if err := a.writeDecisions(d, d.GetDecisions()); err != nil || len(pods) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.Stdout); err != nil {
		return err
	}
	return podsTable(pods).Write(a.Stdout, a.Format)
}

// writeExplanation writes why a job is in its state, and what was decided before, the latest first.
// inFront lists the jobs that it is queued behind, and c is how many GPUs there are; both as far as they are known.
func (a *app) writeExplanation(d *controlv1.DescribeResponse, inFront []string, c capacity) error {
	decisions := reversed(d.GetDecisions())
	switch a.Format {
	case render.JSON:
		return a.writeDocument(render.Table{
			Columns: []render.Column{{Name: "job"}, {Name: "state"}, {Name: "reason"}, {Name: "explanation"}},
			Rows:    [][]any{{d.GetJob().GetName(), d.GetJob().GetState(), d.GetJob().GetReason(), explain(d, c)}},
		}, nil, decisions)
	case render.CSV:
		return decisionsTable(decisions).Write(a.Stdout, a.Format)
	}
	text := explain(d, c) + "\n"
	if len(inFront) > 0 {
		text += "in front of it: " + strings.Join(inFront, ", ") + "\n"
	}
	outlookLines(d.GetJob(), d.GetNowSeconds(), func(name, value string) { text += outlookSentence(name, value) })
	if waited := wordWaits(waits(d.GetDecisions(), d.GetNowSeconds())); waited != "" && !(a.ByCalendar && d.GetJob().FirstStartSeconds != nil) { // a cluster keeps no more than the last wait
		text += waited + "\n"
	}
	if _, err := io.WriteString(a.Stdout, text); err != nil {
		return err
	}
	return a.writeDecisions(d, decisions)
}

type member struct {
	name  string
	value any
}

// writeDocument writes the one row of a table as an object with further members, and decisions as the last.
func (a *app) writeDocument(row render.Table, more []member, decisions []*controlv1.Decision) error {
	var text bytes.Buffer
	if err := decisionsTable(decisions).Write(&text, render.JSON); err != nil {
		return err
	}
	for _, m := range append(more, member{"decisions", json.RawMessage(text.Bytes())}) {
		row.Columns = append(row.Columns, render.Column{Name: m.name})
		row.Rows[0] = append(row.Rows[0], m.value)
	}
	var list bytes.Buffer
	if err := row.Write(&list, render.JSON); err != nil {
		return err
	}
	var objects []json.RawMessage
	if err := json.Unmarshal(list.Bytes(), &objects); err != nil {
		return err
	}
	return render.Document(a.Stdout, objects[0])
}

// decisionsTable gives every number as it is, in the words of decisions.jsonl.
func decisionsTable(decisions []*controlv1.Decision) render.Table {
	t := render.Table{}
	for _, name := range []string{"round", "t_s", "what", "by", "reason", "message", "wanted", "available", "unit", "seats", "batch_per_device", "accumulation_steps", "learning_rate_factor"} {
		t.Columns = append(t.Columns, render.Column{Name: name})
	}
	expects := slices.ContainsFunc(decisions, func(d *controlv1.Decision) bool { return d.GetExpectedSeconds() > 0 })
	if expects {
		t.Columns = append(t.Columns, render.Column{Name: "expected_s"})
	}
	shared := slices.ContainsFunc(decisions, func(d *controlv1.Decision) bool { return len(d.GetWith()) > 0 })
	if shared {
		t.Columns = append(t.Columns, render.Column{Name: "with"})
	}
	for _, d := range decisions {
		wanted, available := math.NaN(), math.NaN()
		if d.GetUnit() != "" {
			wanted, available = d.GetWanted(), d.GetAvailable()
		}
		batch, steps, factor := math.NaN(), math.NaN(), math.NaN()
		if tuning := d.GetTuning(); tuning != nil {
			batch, steps, factor = float64(tuning.GetBatchPerDevice()), float64(tuning.GetAccumulationSteps()), tuning.GetLearningRateFactor()
		}
		t.Rows = append(t.Rows, []any{
			d.GetRound(), d.GetAtSeconds(), d.GetWhat(), d.GetBy(), d.GetReason(), d.GetMessage(), wanted, available, d.GetUnit(),
			seats(d.GetSeats()), batch, steps, factor,
		})
		if expects {
			at := math.NaN()
			if d.GetExpectedSeconds() > 0 {
				at = d.GetExpectedSeconds()
			}
			last := &t.Rows[len(t.Rows)-1]
			*last = append(*last, at)
		}
		if shared {
			last := &t.Rows[len(t.Rows)-1]
			*last = append(*last, strings.Join(d.GetWith(), " "))
		}
	}
	return t
}

// writeDecisions words decisions for people, below what was written before.
func (a *app) writeDecisions(d *controlv1.DescribeResponse, decisions []*controlv1.Decision) error {
	if len(decisions) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.Stdout); err != nil {
		return err
	}
	t := render.Table{Columns: []render.Column{
		{Name: "round", Numeric: true}, {Name: "at", Numeric: true}, {Name: "what"}, {Name: "by", Drop: 1}, {Name: "where or why"},
	}}
	for _, one := range decisions {
		t.Rows = append(t.Rows, []any{roundOf(one), a.at(one.GetAtSeconds()), one.GetWhat(), one.GetBy(), because(one)})
	}
	return t.Write(a.Stdout, a.Format)
}

// roundOf is nothing where nobody kept it.
func roundOf(d *controlv1.Decision) any {
	if d.GetRound() == 0 {
		return math.NaN()
	}
	return d.GetRound()
}

// because is what a decision says besides what it is.
func because(d *controlv1.Decision) string {
	var parts []string
	if where := seats(d.GetSeats()); where != "" {
		if with := d.GetWith(); len(with) > 0 {
			where += " with " + strings.Join(with, ", ")
		}
		parts = append(parts, where)
	}
	if t := d.GetTuning(); t != nil {
		parts = append(parts, wordTuning(t))
	}
	if d.GetReason() != "" || d.GetMessage() != "" {
		parts = append(parts, wordVerdict(d))
	}
	return strings.Join(parts, "; ")
}

// wordVerdict is the verdict's own sentence.
func wordVerdict(d *controlv1.Decision) string {
	if d.GetReason() == "" {
		return d.GetMessage()
	}
	reason, known := core.ParseReason(d.GetReason())
	if !known { // a word of Kubernetes
		return strings.TrimSuffix(d.GetReason()+": "+d.GetMessage(), ": ")
	}
	return core.Verdict{Reason: reason, Message: d.GetMessage(), Wanted: d.GetWanted(), Available: d.GetAvailable(), Unit: d.GetUnit(), ExpectedSeconds: d.GetExpectedSeconds()}.Explain()
}

// failure is why a job failed.
func failure(j *controlv1.Job) string {
	if j.GetState() != core.Failed.String() {
		return ""
	}
	return j.GetMessage()
}

// introduce words a job for people, one line for each thing known.
func (a *app) introduce(d *controlv1.DescribeResponse) error {
	j, now := d.GetJob(), d.GetNowSeconds()
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%-12s  %s\n", name, value)
		}
	}
	ago := func(at *float64) string {
		if at == nil {
			return ""
		}
		return fmt.Sprintf("at %s, %s ago", a.at(*at), render.Span(max(now-*at, 0)))
	}
	line("job", j.GetName())
	if j.Id != nil {
		line("id", strconv.Itoa(int(j.GetId())))
	}
	line("state", strings.TrimSuffix(j.GetState()+": "+j.GetReason()+failure(j), ": "))
	line("tenant", j.GetTenant())
	line("application", j.GetApplication())
	line("experiment", j.GetExperiment())
	line("command", strings.Join(j.GetCommand(), " "))
	if j.Id != nil {
		line("replicas", replicasText(j))
	}
	line("each has", demand(j))
	line("devices", seats(j.GetSeats()))
	line("batch", wordTuning(j.GetTuning()))
	if comes(j) {
		line("comes", fmt.Sprintf("at %s, in %s", render.Span(j.GetSubmitSeconds()), render.Span(max(j.GetSubmitSeconds()-now, 0))))
	} else {
		line(submittedState, ago(j.SubmitSeconds))
	}
	line("first start", ago(j.FirstStartSeconds))
	line("finished", ago(j.FinishSeconds))
	if j.GetExecutedSeconds() > 0 {
		line("ran", fmt.Sprintf("%s, %s of devices", render.Span(j.GetExecutedSeconds()), render.Span(j.GetAttainedSeconds())))
	}
	if n := j.GetFailures(); n > 0 {
		line("failed runs", strconv.Itoa(int(n)))
	}
	if failure(j) == "" {
		line("last trouble", j.GetMessage())
	}
	if j.Id != nil && !comes(j) {
		line("restarts", strconv.Itoa(int(j.GetRestarts())))
		line("preemptions", strconv.Itoa(int(j.GetPreemptions())))
		line("progress", progressOf(j))
	}
	outlookLines(j, now, line)
	if j.FinishSeconds == nil {
		line("forecast", d.GetNotForecast())
	}
	measurementLines(j, line)
	_, err := io.WriteString(a.Stdout, text.String())
	return err
}

// replicasText says how many replicas a job asks for, may have and has.
func replicasText(j *controlv1.Job) string {
	text := fmt.Sprintf("%d asked for", j.GetRequested())
	if j.GetMinReplicas() != j.GetMaxReplicas() {
		text += fmt.Sprintf(", %d to %d possible", j.GetMinReplicas(), j.GetMaxReplicas())
	}
	if n := held(j); n > 0 {
		text += fmt.Sprintf(", %d held", n)
	}
	return text
}

// measurementLines word what a job measured last.
func measurementLines(j *controlv1.Job, line func(name, value string)) {
	if m := j.GetMeasurement(); m != nil {
		line("measured", fmt.Sprintf("%s a step on %s, %s, batch %d per device",
			render.Span(m.GetStepSeconds()), render.Count(int(m.GetReplicas()), "replica"), render.Count(int(m.GetNodes()), "node"), m.GetBatchPerDevice()))
	}
	if g := j.GetGradients(); g != nil {
		line("gradients", fmt.Sprintf("squared norm %.4g, variance %.4g", g.GetSquare(), g.GetVariance()))
	}
}

func held(j *controlv1.Job) int {
	n := 0
	for _, s := range j.GetSeats() {
		n += len(s.GetDevices())
	}
	return n
}

// seats words devices: "t4-0:0,1 t4-1:3".
func seats(list []*controlv1.Seat) string {
	var words []string
	for _, s := range list {
		var devices []string
		for _, device := range s.GetDevices() {
			devices = append(devices, strconv.Itoa(int(device)))
		}
		words = append(words, s.GetNode()+":"+strings.Join(devices, ","))
	}
	return strings.Join(words, " ")
}

func wordTuning(t *controlv1.Tuning) string {
	if t == nil {
		return ""
	}
	text := fmt.Sprintf("%d per device", t.GetBatchPerDevice())
	if n := t.GetAccumulationSteps(); n > 0 {
		text += fmt.Sprintf(" in %d passes", n+1)
	}
	if f := t.GetLearningRateFactor(); f != 0 && f != 1 {
		text += fmt.Sprintf(", learning rate × %.4g", f)
	}
	return text
}

// progressOf is a part of what is declared, or the work done.
func progressOf(j *controlv1.Job) string {
	switch {
	case j.GetTotalWork() > 0:
		return render.Percent(j.GetProgress() / j.GetTotalWork())
	case j.GetProgress() > 0:
		return strconv.FormatFloat(j.GetProgress(), 'g', 6, 64)
	default:
		return "-"
	}
}

func idOf(j *controlv1.Job) any {
	if j.Id == nil {
		return math.NaN()
	}
	return j.GetId()
}

func totalWork(j *controlv1.Job) float64 {
	if j.GetTotalWork() == 0 {
		return math.NaN()
	}
	return j.GetTotalWork()
}

func orUnknown(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// batchSetting and measured are how JSON says what a table has no columns for; nil where nothing is known.
type batchSetting struct {
	BatchPerDevice     uint32   `json:"batch_per_device"`
	AccumulationSteps  uint32   `json:"accumulation_steps"`
	LearningRateFactor float64  `json:"learning_rate_factor"`
	BatchByReplica     []uint32 `json:"batch_by_replica,omitempty"`
}

func tuningOf(t *controlv1.Tuning) *batchSetting {
	if t == nil {
		return nil
	}
	return &batchSetting{t.GetBatchPerDevice(), t.GetAccumulationSteps(), t.GetLearningRateFactor(), t.GetBatchByReplica()}
}

type jobMeasurement struct {
	Accelerator    string  `json:"accelerator"`
	Nodes          uint32  `json:"nodes"`
	Replicas       uint32  `json:"replicas"`
	BatchPerDevice uint32  `json:"batch_per_device"`
	PassSeconds    float64 `json:"pass_seconds"`
	StepSeconds    float64 `json:"step_seconds"`
}

func measurementOf(m *controlv1.Measurement) *jobMeasurement {
	if m == nil {
		return nil
	}
	return &jobMeasurement{m.GetAccelerator(), m.GetNodes(), m.GetReplicas(), m.GetBatchPerDevice(), m.GetPassSeconds(), m.GetStepSeconds()}
}

func reversed(list []*controlv1.Decision) []*controlv1.Decision {
	turned := make([]*controlv1.Decision, 0, len(list))
	for _, d := range slices.Backward(list) {
		turned = append(turned, d)
	}
	return turned
}
