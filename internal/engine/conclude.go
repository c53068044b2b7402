package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// conclude ends the policies and writes what the rounds came to, however they ended.
func (e *execution) conclude(ctx context.Context, interrupted bool, failure error) (*Result, error) {
	if interrupted && e.can.Memory != nil && e.can.Memory.Replaying() {
		return nil, errors.Join(e.policies.close(true), errors.New("stopped while the rounds of an earlier scheduler were repeated: nothing was decided and no results are written; run it again to resume"))
	}
	if e.can.GivesUp != nil && e.can.GivesUp.GaveUpReason() != "" {
		e.note(e.can.GivesUp.GaveUpReason())
	}
	unfinished, ended := e.pipeline.Unfinished(), []*core.Job(nil)
	if interrupted {
		unfinished, ended = e.unreported(unfinished)
	}
	stopped := interrupted
	if e.jobs.Open && len(unfinished) == 0 {
		interrupted = false // it was to go on until then
	}
	failure = errors.Join(failure, e.policies.close(e.can.Memory != nil && (interrupted || failure != nil)))
	r := &Result{
		Interrupted: interrupted, EndSeconds: e.endSeconds(interrupted, stopped), Inputs: append(e.inputs, e.policies.inputs...), Dir: e.dir, ReplacedRun: e.replaced,
		Unfinished: e.window.Among(unfinished), Plugins: e.pluginsUsed(), failure: failure,
	}
	if err := e.summarize(r, append(unfinished, ended...)); err != nil {
		return nil, errors.Join(failure, err)
	}
	if err := r.write(e.policies, e.files); err != nil {
		return nil, errors.Join(failure, err)
	}
	if interrupted {
		r.failure = ctx.Err()
	}
	return r, r.failure
}

// endSeconds is when the run ended. A live one that was interrupted goes on until now, and so does what pools cost.
func (e *execution) endSeconds(interrupted, stopped bool) float64 {
	end := e.pipeline.NowSeconds()
	if e.can.Clock != nil && (interrupted || stopped && len(e.cluster.Pools) > 0) {
		end = max(end, e.can.Clock.Present())
	}
	return end
}

// summarize completes the result, and the files that list what came of jobs, with those that have not ended or whose end the pipeline does
// not know.
func (e *execution) summarize(r *Result, left []*core.Job) (err error) {
	if r.Summary, err = e.attached.Finish(left, r.EndSeconds); err != nil {
		return err
	}
	if e.recorder != nil {
		if err := e.recorder.Finish(left, r.EndSeconds); err != nil {
			return err
		}
	}
	e.noteOutcome(r.Summary)
	if err := e.summarizeReactive(r.Summary, left, r.EndSeconds); err != nil {
		return err
	}
	r.Summary.Name, r.Summary.Seed = e.Name, e.Seed
	r.Summary.Plugins = e.troubles()
	if e.chooser != nil {
		r.Summary.Synthesizer = e.chooser.Summary(r.EndSeconds)
	}
	r.Summary.WallSeconds = metrics.Number(e.stopwatch().Seconds())
	if !e.Brief {
		r.Jobs = e.collector.Jobs()
	}
	return nil
}

// unreported sorts what an interrupted run leaves, which its backend may know more of than the pipeline: jobs that were submitted since
// the last round, and those that ended since, each as of its moment.
func (e *execution) unreported(unsettled []*core.Job) (unfinished, ended []*core.Job) {
	if e.can.Pending != nil {
		unsettled = append(unsettled, e.can.Pending.PendingSubmissions()...)
	}
	if e.can.Ends == nil {
		return unsettled, nil
	}
	for _, j := range unsettled {
		if state, at, is := e.can.Ends.Ended(j.ID); is {
			ended = append(ended, j.EndedAt(state, at))
		} else {
			unfinished = append(unfinished, j)
		}
	}
	return unfinished, ended
}

// closeBackend closes the backend. When the run ends by an error, that is no fault of the jobs: they run on where they can.
func (e *execution) closeBackend(r *Result, failure error) error {
	if failure == nil || e.can.Leaving == nil || r != nil && r.Interrupted {
		return e.can.Closer.Close()
	}
	running, err := e.can.Leaving.Leave()
	if running > 0 {
		e.note(fmt.Sprintf("%d jobs run on: run it again to resume them, or with --fresh to stop them", running))
	}
	return err
}

// write completes the files of the run.
func (r *Result) write(decided *policies, files *outputs) (err error) {
	c := decided.config
	if r.Text, err = document(r.Summary); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	r.Outputs, r.Files = files.digests(), files.contents()
	resolved, err := placeless(c).Resolved()
	if err != nil {
		return err
	}
	m := manifestOf(c, resolved)
	m.Interrupted, m.Earlier, m.Plugins, m.Inputs, m.Outputs = r.Interrupted, decided.earlier, r.Plugins, r.Inputs, r.Outputs
	if r.failure != nil {
		m.Failed = r.failure.Error()
	}
	record, err := document(m)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := files.write(SummaryFile, r.Text); err != nil {
		return err
	}
	if err := files.write(ManifestFile, record); err != nil {
		return err
	}
	return files.commit()
}

// document is a value as JSON for files.
func document(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	return b.Bytes(), err
}

// placeless is the config with the default output folder: where results go is no part of the run.
func placeless(c *configs.Config) *configs.Config {
	copied := *c
	copied.Output.Dir = "runs"
	return &copied
}
