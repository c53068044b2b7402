package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A stay is a job on the same devices from one moment to another.
type stay struct {
	job         int // row of jobs.csv
	start, end  float64
	accelerator string
	replicas    int
	seats       []seat
	batch       int // on a device; 0 when left to the job
	passes      int // accumulation steps
	how         string
}

// A seat is the devices of one node, a bit each.
type seat struct {
	node int
	mask uint64
}

// A wait is from the moment at which a job was told a reason until something else became of it.
type wait struct {
	job               int
	start, end        float64
	reason            string
	wanted, available float64 // NaN when the reason is not counted
}

// A health is that of a node from a moment on.
type health struct {
	node  int
	at    float64
	state string
}

// The states of a node that is not part of the cluster yet, or no more.
const notJoined, gone = "not joined", "gone"

// awaitsRound is the reason of a job for which no round was held since its submission.
const awaitsRound = "awaits_round"

// A decision is a line of decisions.jsonl.
type decision struct {
	At     float64 `json:"t_s"`
	Job    string  `json:"job"`
	Node   string  `json:"node"`
	Health string  `json:"health"`
	Event  string  `json:"event"`

	Accelerator string `json:"accelerator"`
	Devices     int    `json:"devices"`

	Verdict   string      `json:"verdict"`
	Action    string      `json:"action"`
	Reason    string      `json:"reason"`
	Wanted    *float64    `json:"wanted"`
	Available *float64    `json:"available"`
	Replicas  int         `json:"replicas"`
	Seats     [][2]string `json:"seats"`
	Batch     int         `json:"batch_per_device"`
	Passes    int         `json:"accumulation_steps"`
}

// A history follows the jobs through decisions.jsonl.
type history struct {
	run    *Run
	rows   map[string]int
	open   []int // by job: 1 + the stay that goes on
	waits  []int // by job: 1 + the wait that goes on
	latest float64
}

// readDecisions makes stays, waits and healths of a decisions.jsonl. What came before a line that cannot be read is kept.
func (r *Run) readDecisions(in io.Reader) error {
	h := &history{run: r, rows: make(map[string]int, len(r.Jobs.name)), open: make([]int, len(r.Jobs.name)), waits: make([]int, len(r.Jobs.name))}
	for i, name := range r.Jobs.name {
		h.rows[name] = i
		if !math.IsNaN(r.Jobs.submit[i]) {
			h.wait(i, r.Jobs.submit[i], awaitsRound, nil, nil)
		}
	}
	lines := bufio.NewReaderSize(in, 1<<16)
	var broken error
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var d decision
			if jsonErr := json.Unmarshal(line, &d); jsonErr != nil {
				broken = fmt.Errorf("line %d: %w", n, jsonErr)
				break
			}
			h.add(&d)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			broken = err
			break
		}
	}
	h.finish()
	return broken
}

func (h *history) add(d *decision) {
	h.latest = max(h.latest, d.At)
	switch d.Event {
	case "node_changed":
		h.run.healths = append(h.run.healths, health{h.run.node(d.Node), d.At, d.Health})
		return
	case "node_added":
		at := h.run.node(d.Node)
		h.run.nodes[at].accelerator, h.run.nodes[at].devices = d.Accelerator, min(max(d.Devices, 1), 64)
		h.run.healths = append(h.run.healths, health{at, 0, notJoined}, health{at, d.At, d.Health})
		return
	case "node_removed":
		h.run.healths = append(h.run.healths, health{h.run.node(d.Node), d.At, gone})
		return
	}
	job, known := h.rows[d.Job]
	if !known && h.run.derived && d.Job != "" {
		job, known = h.enter(d.Job), true
	}
	if !known {
		return
	}
	if h.run.derived {
		h.derive(job, d)
	}
	switch {
	case d.Event == "job_finished", d.Event == "job_failed", d.Event == "job_cancelled":
		h.end(job, d.At, strings.TrimPrefix(d.Event, "job_"))
		h.endWait(job, d.At)
	case d.Event == "job_interrupted":
		h.end(job, d.At, "interrupted")
		h.wait(job, d.At, "interrupted", nil, nil)
	case d.Verdict == "reject":
		h.endWait(job, d.At)
	case d.Verdict != "":
		h.wait(job, d.At, cmp.Or(d.Reason, d.Verdict), d.Wanted, d.Available)
	case d.Action == "stop":
		h.end(job, d.At, "preempted")
		h.wait(job, d.At, d.Reason, nil, nil)
	case d.Action == "start", d.Action == "move", d.Event == "job_submitted", d.Event == "job_shrunk" && h.open[job] > 0:
		h.begin(job, d)
	case d.Action == "tune" && h.open[job] > 0:
		s := &h.run.stays[h.open[job]-1]
		s.batch, s.passes = d.Batch, d.Passes // the last of the stay
		h.run.tunes = append(h.run.tunes, tune{job, d.At, d.Batch, d.Passes})
	}
}

func (h *history) begin(job int, d *decision) {
	if i := h.open[job]; i > 0 {
		how := "moved"
		if h.run.stays[i-1].replicas != d.Replicas {
			how = "resized"
		}
		h.end(job, d.At, how)
	}
	h.endWait(job, d.At)
	s := stay{job: job, start: d.At, end: math.NaN(), replicas: d.Replicas, batch: d.Batch, passes: d.Passes, how: "unfinished"}
	for _, on := range d.Seats {
		node, mask := h.run.node(on[0]), uint64(0)
		for index := range strings.SplitSeq(on[1], ",") {
			if bit, err := strconv.ParseUint(index, 10, 6); err == nil {
				mask |= 1 << bit
			}
		}
		s.seats = append(s.seats, seat{node, mask})
		s.accelerator = joined(s.accelerator, h.run.nodes[node].accelerator)
	}
	h.run.stays = append(h.run.stays, s)
	h.open[job] = len(h.run.stays)
	h.run.tunes = append(h.run.tunes, tune{job, d.At, d.Batch, d.Passes})
}

// joined adds an accelerator type to those of a stay.
func joined(types, another string) string {
	if another == "" || slices.Contains(strings.Split(types, "+"), another) {
		return types
	}
	if types == "" {
		return another
	}
	return types + "+" + another
}

func (h *history) end(job int, at float64, how string) {
	if i := h.open[job]; i > 0 {
		h.run.stays[i-1].end, h.run.stays[i-1].how = at, how
		h.open[job] = 0
	}
}

func (h *history) wait(job int, at float64, reason string, wanted, available *float64) {
	h.endWait(job, at)
	if h.open[job] > 0 { // it runs on, and was told why it gets no more
		return
	}
	w := wait{job: job, start: at, end: math.NaN(), reason: reason, wanted: math.NaN(), available: math.NaN()}
	if wanted != nil {
		w.wanted = *wanted
	}
	if available != nil {
		w.available = *available
	}
	h.run.waits = append(h.run.waits, w)
	h.waits[job] = len(h.run.waits)
}

func (h *history) endWait(job int, at float64) {
	if i := h.waits[job]; i > 0 {
		h.run.waits[i-1].end = at
		h.waits[job] = 0
	}
}

// finish ends what goes on at the last moment that is known of.
func (h *history) finish() {
	if h.run.now > h.latest {
		h.latest = h.run.now
	}
	for _, at := range h.run.Jobs.finish {
		if at > h.latest {
			h.latest = at
		}
	}
	if h.run.Unended && !(h.run.now > h.latest) {
		h.run.now = h.latest
	}
	for job := range h.open {
		if ended := h.run.Jobs.finish[job]; h.open[job] > 0 && !math.IsNaN(ended) {
			h.end(job, ended, "finished")
		}
		if i := h.open[job]; i > 0 {
			h.run.stays[i-1].end = h.latest
		}
		if i := h.waits[job]; i > 0 && !math.IsNaN(h.run.Jobs.finish[job]) {
			h.endWait(job, h.run.Jobs.finish[job])
		} else if i > 0 {
			h.run.waits[i-1].end = max(h.latest, h.run.waits[i-1].start)
		}
	}
	h.run.waits = slices.DeleteFunc(h.run.waits, func(w wait) bool { return !(w.end > w.start) })
	h.run.stays = slices.DeleteFunc(h.run.stays, func(s stay) bool { return !(s.end > s.start) })
}

// readTimeline takes the stays of a timeline.csv, which are exact, in place of those that follow from the decisions.
func (r *Run) readTimeline(t *table) error {
	job, errJob := t.numbers("job")
	start, errStart := t.numbers("start_s")
	end, errEnd := t.numbers("end_s")
	replicas, errReplicas := t.numbers("replicas")
	batch, errBatch := t.numbers("batch_per_device")
	passes, errPasses := t.numbers("accumulation_steps")
	row := make(map[int]int, len(r.Jobs.id))
	for i, id := range r.Jobs.id {
		row[id] = i
	}
	accelerator, seats, how := t.text("accelerator"), t.text("seats"), t.text("end")
	stays := make([]stay, 0, t.rows)
	for i := range t.rows {
		at, known := row[int(zeroed(job[i]))]
		if !known || math.IsNaN(job[i]) || math.IsNaN(start[i]) || !(end[i] > start[i]) {
			continue
		}
		stays = append(stays, stay{
			job: at, start: start[i], end: end[i], replicas: int(zeroed(replicas[i])), accelerator: accelerator[i],
			batch: int(zeroed(batch[i])), passes: int(zeroed(passes[i])), how: how[i], seats: r.seatsOf(seats[i]),
		})
	}
	if len(stays) > 0 || t.rows == 0 {
		r.stays, r.exact = stays, true
	}
	return errors.Join(errJob, errStart, errEnd, errReplicas, errBatch, errPasses)
}

// seatsOf reads the seats of timeline.csv: node:mask, joined by +, masks in hexadecimal.
func (r *Run) seatsOf(text string) (list []seat) {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, "+") {
		at := strings.LastIndexByte(part, ':')
		if at < 0 {
			continue
		}
		mask, err := strconv.ParseUint(part[at+1:], 16, 64)
		if err != nil {
			continue
		}
		list = append(list, seat{r.node(part[:at]), mask})
	}
	return list
}

func zeroed(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -1), math.MaxInt32)
}

// readHealths takes the state of each node over time from nodes.csv, in place of that in the decisions.
func (r *Run) readHealths(t *table) error {
	start, errStart := t.numbers("start_s")
	devices, errDevices := t.numbers("devices")
	accelerator, state := t.text("accelerator"), t.text("health")
	r.healths = slices.DeleteFunc(r.healths, func(h health) bool { return h.state != gone }) // of that, nodes.csv has no row
	seen := map[int]bool{}
	for i, name := range t.text("node") {
		at := r.node(name)
		r.nodes[at].accelerator = cmp.Or(accelerator[i], r.nodes[at].accelerator)
		if d := int(zeroed(devices[i])); d > 0 {
			r.nodes[at].devices = min(d, 64)
		}
		if !seen[at] && start[i] > 0 {
			r.healths = append(r.healths, health{at, 0, notJoined})
		}
		seen[at] = true
		if (state[i] != "ready" || start[i] > 0) && !math.IsNaN(start[i]) {
			r.healths = append(r.healths, health{at, start[i], state[i]})
		}
	}
	slices.SortStableFunc(r.healths, func(a, b health) int { return cmp.Compare(a.at, b.at) })
	return errors.Join(errStart, errDevices)
}
