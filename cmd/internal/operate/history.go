package operate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/lab/report"
)

// keptHistory is how many decisions of a recorded run are kept of a job, the last ones.
const keptHistory = 50

// decisionLine is a line of decisions.jsonl, as far as it is about a job.
type decisionLine struct {
	Round     uint32      `json:"round"`
	AtSeconds float64     `json:"t_s"`
	Job       string      `json:"job"`
	Event     string      `json:"event"`
	Verdict   string      `json:"verdict"`
	Action    string      `json:"action"`
	Reason    string      `json:"reason"`
	Wanted    float64     `json:"wanted"`
	Available float64     `json:"available"`
	Unit      string      `json:"unit"`
	Expected  float64     `json:"expected_s"`
	Message   string      `json:"message"`
	Cause     string      `json:"cause"`
	By        string      `json:"by"`
	Seats     [][2]string `json:"seats"`
	With      []string    `json:"with"`

	BatchPerDevice     uint32  `json:"batch_per_device"`
	AccumulationSteps  uint32  `json:"accumulation_steps"`
	LearningRateFactor float64 `json:"learning_rate_factor"`
}

const decisionsFile = "decisions.jsonl"

// openDecisions opens the decisions of a run, those of one that was killed as far as they were written.
func openDecisions(dir, path string) (io.ReadCloser, error) {
	file, err := report.OpenFile(dir, decisionsFile)
	switch {
	case !errors.Is(err, os.ErrNotExist):
		return file, err
	case report.Unended(dir):
		return nil, cli.Problem(path, "the run has not ended, and wrote no decisions yet", "resume it with quartet run and ask its scheduler; a run writes decisions when output.write lists them")
	}
	return nil, cli.Problem(path, "no such file", "a run writes it when output.write lists decisions")
}

// readDecisions finds in the decisions of a recorded run what was last decided about a job.
func readDecisions(dir, job string) (*controlv1.DescribeResponse, error) {
	path := filepath.Join(dir, decisionsFile)
	file, err := openDecisions(dir, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	d := &controlv1.DescribeResponse{Job: &controlv1.Job{Name: job}}
	names := make(map[string]bool)
	in := bufio.NewReader(file)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var l decisionLine
			if wrong := json.Unmarshal(text, &l); wrong != nil && errors.Is(err, io.EOF) {
				break // a last line that was not written to its end never was
			} else if wrong != nil {
				return nil, core.Diagnostics{{Position: core.Position{File: path, Line: n}, Summary: "no decision: " + wrong.Error()}}
			}
			d.NowSeconds = max(d.NowSeconds, l.AtSeconds)
			if l.Job == job {
				l.follow(d)
			} else if l.Job != "" {
				names[l.Job] = true
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", path, err)
		}
	}
	if len(d.GetDecisions()) == 0 {
		hint := ""
		if nearest := core.Nearest(job, slices.Sorted(maps.Keys(names))); nearest != "" {
			hint = fmt.Sprintf("did you mean %q?", nearest)
		}
		return nil, cli.Problem(path, fmt.Sprintf("has no job %q", job), hint)
	}
	return d, nil
}

// follow takes in one decision, and where it leaves the job.
func (l *decisionLine) follow(d *controlv1.DescribeResponse) {
	one := l.decision()
	if d.Decisions = append(d.GetDecisions(), one); len(d.GetDecisions()) > keptHistory {
		d.Decisions = d.GetDecisions()[1:]
	}
	j := d.GetJob()
	switch one.GetWhat() {
	case core.Tune.String():
		return
	case core.JobProgressed.String(): // it begins again, under a scheduler of before
		j.Message = l.Message
		j.Failures++
		return
	}
	j.State = stateAfter(one.GetWhat())
	switch j.GetState() {
	case core.Running.String():
		j.Seats = one.GetSeats()
	case core.Failed.String():
		j.Seats, j.Message = nil, l.Message
	default:
		j.Seats = nil
	}
	if j.Reason = l.Reason; one.GetWhat() == core.JobInterrupted.String() {
		j.Message = l.Message
		cause, _ := core.ParseCause(l.Cause) // absent from a run of before, and unknown then
		if j.Reason, one.Reason = cause.Reason().String(), cause.Reason().String(); cause == core.CauseExited {
			j.Failures++
		}
	}
}

// decision is the line as a scheduler answers.
func (l *decisionLine) decision() *controlv1.Decision {
	one := &controlv1.Decision{
		Round: l.Round, AtSeconds: l.AtSeconds, What: l.Event + l.Verdict + l.Action, By: l.By, Reason: l.Reason, Message: l.Message,
		Wanted: l.Wanted, Available: l.Available, Unit: l.Unit, ExpectedSeconds: l.Expected,
		With: l.With,
	}
	for _, s := range l.Seats {
		seat := &controlv1.Seat{Node: s[0]}
		for device := range strings.SplitSeq(s[1], ",") {
			if n, err := strconv.ParseUint(device, 10, 32); err == nil {
				seat.Devices = append(seat.Devices, uint32(n))
			}
		}
		one.Seats = append(one.Seats, seat)
	}
	if l.BatchPerDevice != 0 || l.AccumulationSteps != 0 || l.LearningRateFactor != 0 {
		one.Tuning = &controlv1.Tuning{
			BatchPerDevice: l.BatchPerDevice, AccumulationSteps: l.AccumulationSteps, LearningRateFactor: l.LearningRateFactor,
		}
	}
	return one
}

// stateAfter is the state of a job after an event, a verdict or a change.
func stateAfter(what string) string {
	switch what {
	case core.JobFinished.String(), core.Finish.String(), core.End.String():
		return core.Completed.String()
	case core.JobFailed.String():
		return core.Failed.String()
	case core.JobCancelled.String():
		return core.Cancelled.String()
	case core.Reject.String():
		return core.Rejected.String()
	case core.Start.String(), core.Move.String():
		return core.Running.String()
	case core.Pause.String():
		return core.Pending.String()
	}
	return core.Waiting.String()
}
