package exchange

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Record is a job as a log describes it. Times are in seconds; those that are not known are NaN.
type Record struct {
	Name string // unique in its trace
	// Tenant: who submitted the job; empty where the log does not say.
	Tenant string
	// Application: what it trains; empty where the log does not say.
	Application  string
	Accelerators string // types it may run on, with | between them
	Outcome      string // one of Outcomes, or empty
	// Submit: when it was submitted.
	Submit   float64
	Start    float64 // when it first ran
	Duration float64 // for which it ran, above 0
	Limit    float64 // time that its user allowed it
	Estimate float64 // time that its user expected
	// Replicas: number of replicas, a device each.
	Replicas int32
	line     int32
	more     *Details
}

// Details is what few logs hold; zero where they do not.
type Details struct {
	Weight      float64 // how much the job counts in objectives
	CPUs        float64 // cores of each replica
	MemoryGB    float64 // memory of each replica, GB
	Deadline    float64 // seconds after its submission
	Tier        string  // name of its tier
	Experiment  string  // name of the experiment that it belongs to
	MinReplicas int32   // fewest replicas that it can run on
	MaxReplicas int32   // most replicas that it can use
	Pinned      bool    // it stays where it runs
	BestEffort  bool    // it has no claim to devices that others want
	ShareMilli  int16   // thousandths of a device that each replica has; 0 for a whole one

	// Shares says that the job declares what it has of devices, or what it shares them by: a part or a slice, device memory, a utilisation, a tolerance, stages or
	// what it gains from CPUs. No import sets it: of all that, logs have ShareMilli only.
	Shares bool
}

// shares reports whether the job declares what it has of devices, or what it shares them by.
func (r *Record) shares() bool { return r.more != nil && (r.more.Shares || r.more.ShareMilli > 0) }

// besides reports whether there is anything but what the job shares devices by.
func (d *Details) besides() bool {
	if d == nil {
		return false
	}
	of := *d
	of.Shares, of.ShareMilli = false, 0
	return of != Details{}
}

// Details is what the record holds besides.
func (r *Record) Details() Details {
	if r.more == nil {
		return Details{}
	}
	return *r.more
}

// Outcomes lists how a job of a log may have ended.
var Outcomes = []string{"completed", "failed", "cancelled", "timeout", "out_of_memory", "node_failed", "preempted"}

// Trace is what an import keeps.
type Trace struct {
	Epoch  float64 // Unix seconds of moment 0; 0 where the log does not say
	chunks [][]Record
	count  int
}

// chunk is how many records are kept together: a list that grows by copying would need twice its memory.
const chunk = 4096

func (t *Trace) add(r *Record) {
	if t.count%chunk == 0 {
		t.chunks = append(t.chunks, make([]Record, 0, chunk))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, *r)
	t.count++
}

// cut keeps the first n records, of which there is at least one.
func (t *Trace) cut(n int) {
	last := (n - 1) / chunk
	t.chunks = t.chunks[:last+1]
	t.chunks[last] = t.chunks[last][:n-last*chunk]
	t.count = n
}

// Len is the number of records.
func (t *Trace) Len() int { return t.count }

// At is a record by its index. It stays the trace's own.
func (t *Trace) At(i int) *Record { return &t.chunks[i/chunk][i%chunk] }

// Add appends a record. Names must be unique.
func (t *Trace) Add(r Record, more Details) {
	if more != (Details{}) {
		r.more = &more
	}
	t.add(&r)
}

// order is the indices of the records by submission, then by line.
func (t *Trace) order() []int32 {
	type key struct {
		submit float64
		line   int32
		index  int32
	}
	keys := make([]key, t.count)
	for i := range keys {
		r := t.At(i)
		keys[i] = key{r.Submit, r.line, int32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		switch {
		case a.submit < b.submit:
			return -1
		case a.submit > b.submit:
			return 1
		}
		return cmp.Or(int(a.line)-int(b.line), int(a.index)-int(b.index))
	})
	order := make([]int32, t.count)
	for i, k := range keys {
		order[i] = k.index
	}
	return order
}

// epochs is the least time that counts as seconds of a calendar: no log begins three years after its own start.
const epochs = 1e8

// rebase makes the earliest submission 0 where times are those of a calendar. It repeats, so that what it leaves is read as no calendar again.
func (in *importer) rebase() {
	t := &in.trace
	for moved, first := 0.0, in.calendar(); !math.IsNaN(first); first = in.calendar() {
		moved += first
		t.Epoch = moved
		kept := 0
		for i := range t.count {
			r := t.At(i)
			if r.Submit < epochs {
				in.tally.drop(reasonEpoch, int(r.line), r.Name)
				continue
			}
			r.Submit = micros(r.Submit - first)
			r.Start = micros(r.Start - first)
			*t.At(kept) = *r
			kept++
		}
		t.cut(kept)
	}
}

// calendar is the earliest submission on a calendar; NaN where times are those of no calendar. They are of one where most are, and
// the others are years before them, as where a clock was not set: a log without a calendar may last that long, but is not
// silent for years.
func (in *importer) calendar() float64 {
	first, before, on := math.Inf(1), math.Inf(-1), 0
	for i := range in.trace.count {
		if submit := in.trace.At(i).Submit; submit < epochs {
			before = max(before, submit)
		} else {
			first = min(first, submit)
			on++
		}
	}
	if 2*on <= in.trace.count || first-before < epochs {
		return nan
	}
	return first
}

// micros drops what the difference of two moments has beyond microseconds: it is the error of rounding.
func micros(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// Count is how many rows an import dropped for one reason.
type Count struct {
	// Reason: why rows were dropped.
	Reason string `json:"reason"`
	// Rows: number of dropped rows.
	Rows    int    `json:"rows"`
	Line    int    `json:"first_line"`        // of the first such row
	Example string `json:"example,omitempty"` // the text in question, shortened
}

// Counts accounts for every row: Rows is Kept and the rows of all that was Dropped.
type Counts struct {
	// Rows: number of rows in the log.
	Rows int `json:"rows"`
	// Kept: number of rows that were kept.
	Kept    int     `json:"kept"`
	Dropped []Count `json:"dropped"` // the most frequent first
}

// tally counts dropped rows by reason.
type tally struct {
	rows    int
	reasons map[string]*Count
}

func (t *tally) drop(reason string, line int, example string) {
	c := t.reasons[reason]
	if c == nil {
		if t.reasons == nil {
			t.reasons = map[string]*Count{}
		}
		c = &Count{Reason: reason, Line: line, Example: shorten(example)}
		t.reasons[reason] = c
	}
	c.Rows++
}

// shorten cuts a long text for a message.
func shorten(s string) string {
	const most = 60
	s = strings.ToValidUTF8(s, "\ufffd")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

func (t *tally) counts(kept int) Counts {
	c := Counts{Rows: t.rows, Kept: kept, Dropped: []Count{}}
	for _, reason := range t.reasons {
		c.Dropped = append(c.Dropped, *reason)
	}
	slices.SortFunc(c.Dropped, func(a, b Count) int {
		return cmp.Or(-cmp.Compare(a.Rows, b.Rows), strings.Compare(a.Reason, b.Reason))
	})
	return c
}
