package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// batsimJob is a job of a Batsim workload. What is not there stays NaN.
type batsimJob struct {
	ID      text    `json:"id"`
	Submit  float64 `json:"subtime"`
	Limit   float64 `json:"walltime"` // -1 for none
	Devices float64 `json:"res"`
	Profile text    `json:"profile"`
	batsimExtra
	Extra json.RawMessage `json:"extra_data"`
}

// text is a text that may be written as a number.
type text string

var errText = errors.New("neither a text nor a number")

func (t *text) UnmarshalJSON(raw []byte) error {
	if len(raw) > 1 && raw[0] == '"' {
		if inner := raw[1 : len(raw)-1]; printable(inner) && bytes.IndexByte(inner, '\\') < 0 {
			*t = text(inner)
			return nil
		}
		return json.Unmarshal(raw, (*string)(t))
	}
	if _, ok := numberSigned(raw); !ok {
		return fmt.Errorf("%s: %w", shorten(string(raw)), errText)
	}
	*t = text(raw)
	return nil
}

// batsimExtra is the fields of a job that only others than Batsim read. Batsim 5 passes on what stands in extra_data, an object or a text
// that holds one; those before pass on what stands beside the fields of theirs.
type batsimExtra struct {
	Tenant       string  `json:"tenant,omitempty"`
	Application  string  `json:"application,omitempty"`
	Accelerators string  `json:"accelerators,omitempty"`
	Outcome      string  `json:"outcome,omitempty"`
	Start        float64 `json:"observed_start"`
	Estimate     float64 `json:"estimate"`
}

// batsimProfile is what a job does. The others but a delay and a sequence last as long as the platform takes for them; what is
// expected of them, or was measured, is not read by Batsim.
type batsimProfile struct {
	Type   string   `json:"type"`
	Delay  *float64 `json:"delay"`
	Repeat *loose   `json:"repeat"` // of a sequence; once if left out
	Parts  []text   `json:"seq"`    // of a sequence: names of profiles

	Expected *loose `json:"expected_execution_time"` // seconds
	Measured *loose `json:"runtime"`                 // seconds
}

// loose is a number that may stand where somebody else wrote something else; it is NaN then.
type loose float64

func (x *loose) UnmarshalJSON(raw []byte) error {
	value, ok := numberSigned(raw)
	if *x = loose(value); !ok {
		*x = loose(nan)
	}
	return nil
}

// The types of profiles, by the versions of Batsim that write them.
const (
	batsimDelay = "DelayProfile" // from version 5
	delayBefore = "delay"
)

// isSequence reports whether profiles of a type are others in sequence.
func isSequence(kind string) bool {
	return kind == "SequentialCompositionProfile" || kind == "sequential_composition" || kind == "composed"
}

// batsim reads a JSON workload of Batsim as a stream: profiles may stand before the jobs or behind them.
func (in *importer) batsim(content io.Reader) error {
	if err := in.checkFixed(); err != nil {
		return err
	}
	b := &batsimReader{importer: in, decoder: json.NewDecoder(content), profiles: map[string]batsimProfile{}}
	if err := b.read(); err != nil {
		return in.notJSON(b.decoder, err, "workload of Batsim", `expected {"nb_res": …, "jobs": […], "profiles": {…}}`)
	}
	b.resolve()
	return nil
}

type batsimReader struct {
	*importer
	decoder  *json.Decoder
	profiles map[string]batsimProfile
	jobs     Trace    // without durations, until the profiles are known
	named    []string // their profiles
	current  batsimJob
}

func (b *batsimReader) read() error {
	if err := expect(b.decoder, '{'); err != nil {
		return err
	}
	found := map[string]bool{}
	for b.decoder.More() {
		key, err := b.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		switch name {
		case "jobs":
			err = b.readJobs()
		case "profiles":
			err = b.decoder.Decode(&b.profiles)
		default:
			var ignored json.RawMessage
			err = b.decoder.Decode(&ignored)
		}
		if err != nil {
			return err
		}
		if found[name] {
			return fmt.Errorf("%q stands there twice", name)
		}
		found[name] = true
	}
	if err := expect(b.decoder, '}'); err != nil {
		return err
	}
	if err := ended(b.decoder, "workload"); err != nil {
		return err
	}
	if !found["jobs"] {
		return errors.New("it has no jobs")
	}
	return nil
}

// readJobs reads the jobs. One that is no object of the right form is a row that is dropped.
func (b *batsimReader) readJobs() error {
	reset := func() {
		b.current = batsimJob{Submit: nan, Limit: nan, Devices: nan}
		b.current.Start, b.current.Estimate = nan, nan
	}
	return b.elements(b.decoder, &b.current, reset, func() { b.job(&b.current) }, "job is not of the form of Batsim")
}

// readExtra reads extra_data over the fields of a job. What is of no use there is for somebody else.
func (job *batsimJob) readExtra() {
	raw := []byte(job.Extra)
	if len(raw) > 0 && raw[0] == '"' {
		var inner string
		if bytes.Count(raw, []byte(`\`)) == bytes.Count(raw, []byte(`\"`)) { // as most are: nothing but quotes is escaped
			raw = bytes.ReplaceAll(raw[1:len(raw)-1], []byte(`\"`), []byte(`"`))
		} else if json.Unmarshal(raw, &inner) == nil {
			raw = []byte(inner)
		}
	}
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	extra := job.batsimExtra
	if json.Unmarshal(raw, &extra) == nil {
		job.batsimExtra = extra
	}
}

// job keeps a job until its profile is known. Line stands for its place among the jobs.
func (b *batsimReader) job(job *batsimJob) {
	job.readExtra()
	outcome, _, _ := outcomeOf(job.Outcome)
	r := Record{
		Name: string(job.ID), line: int32(b.tally.rows), Outcome: outcome,
		Tenant: b.label([]byte(job.Tenant)), Application: b.label([]byte(job.Application)), Accelerators: b.label([]byte(job.Accelerators)),
		Submit: knownSeconds(job.Submit), Start: knownSeconds(job.Start), Limit: knownSeconds(job.Limit), Estimate: knownSeconds(job.Estimate),
	}
	if fault := b.fault(&r, job.Devices); fault != "" {
		b.tally.drop(fault, b.tally.rows, string(job.ID))
		return
	}
	if r.Limit == 0 {
		r.Limit = nan
	}
	if r.Estimate == 0 {
		r.Estimate = nan
	}
	r.Replicas = int32(job.Devices)
	b.jobs.add(&r)
	b.named = append(b.named, b.label([]byte(job.Profile)))
}

// knownSeconds is a time that a trace may hold, and NaN for any other.
func knownSeconds(x float64) float64 {
	if x < 0 || x > maxSeconds {
		return nan
	}
	return x
}

// fault returns why a job is dropped; nothing for one that is kept.
func (b *batsimReader) fault(r *Record, devices float64) string {
	for _, k := range b.Keep {
		if !b.keeps(r.Outcome) {
			return reasonKeep(k)
		}
	}
	readable := printable([]byte(r.Tenant)) && printable([]byte(r.Application)) && printable([]byte(r.Accelerators))
	switch {
	case r.Name == "" || !printable([]byte(r.Name)):
		return reasonName
	case !readable || r.Accelerators != "" && !distinct([]byte(r.Accelerators)):
		return "tenant, application or accelerators cannot be read"
	case r.Submit != r.Submit:
		return "subtime is not known, or above 1e11 s"
	case !(0 <= devices && devices <= maxCount) || devices != math.Trunc(devices):
		return "res is not a whole number up to 1048576"
	case devices == 0:
		return reasonNoGPU
	}
	return ""
}

// resolve gives every job the duration of its profile.
func (b *batsimReader) resolve() {
	known := map[string]batsimSpan{}
	for i := range b.jobs.count {
		r := b.jobs.At(i)
		span := b.span(b.named[i], known)
		reason := span.fault
		if reason == "" {
			r.Duration = span.seconds
			reason = r.fault()
		}
		if reason != "" {
			b.tally.drop(reason, int(r.line), r.Name)
			continue
		}
		b.keep(r)
	}
}

// batsimSpan is how long a profile lasts, or why that is not known.
type batsimSpan struct {
	seconds float64
	fault   string
}

// span is that of a profile. Those found before are known.
func (b *batsimReader) span(name string, known map[string]batsimSpan) (span batsimSpan) {
	if found, is := known[name]; is {
		return found
	}
	known[name] = batsimSpan{fault: "profile is a sequence that holds itself"} // until it is found
	defer func() { known[name] = span }()
	profile, exists := b.profiles[name]
	switch {
	case !exists:
		return batsimSpan{fault: "profile does not exist"}
	case profile.Type == batsimDelay || profile.Type == delayBefore:
		if profile.Delay == nil || !(*profile.Delay <= maxSeconds) {
			return batsimSpan{fault: "profile has no delay"}
		}
		return batsimSpan{seconds: *profile.Delay}
	case isSequence(profile.Type):
		if span = b.sequence(&profile, known); span.fault == "" {
			return span
		}
	default:
		span.fault = "profile of type " + strconv.Quote(shorten(profile.Type)) + " has no duration"
	}
	for _, given := range [...]*loose{profile.Expected, profile.Measured} {
		if given != nil && 0 < *given && *given <= maxSeconds {
			return batsimSpan{seconds: float64(*given)}
		}
	}
	return span
}

// sequence is the time that the parts of a profile take one after another, again and again.
func (b *batsimReader) sequence(profile *batsimProfile, known map[string]batsimSpan) batsimSpan {
	total, repeat := 0.0, 1.0
	for _, name := range profile.Parts {
		part := b.span(string(name), known)
		if part.fault != "" {
			return part
		}
		total += part.seconds
	}
	if profile.Repeat != nil {
		repeat = float64(*profile.Repeat)
	}
	if total *= repeat; repeat < 1 || repeat != math.Trunc(repeat) || len(profile.Parts) == 0 || total > maxSeconds {
		return batsimSpan{fault: "profile is a sequence of no length"}
	}
	return batsimSpan{seconds: micros(total)}
}
