package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// batsimJob is a job of a Batsim workload. Batsim passes on fields that it does not know: those after the profile are ours.
// What is not there stays NaN.
type batsimJob struct {
	ID           text    `json:"id"`
	Submit       float64 `json:"subtime"`
	Limit        float64 `json:"walltime"` // -1 for none
	Devices      float64 `json:"res"`
	Profile      text    `json:"profile"`
	Tenant       string  `json:"tenant"`
	Application  string  `json:"application"`
	Accelerators string  `json:"accelerators"`
	Outcome      string  `json:"outcome"`
	Start        float64 `json:"observed_start"`
	Estimate     float64 `json:"estimate"`
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

// batsimProfile is what a job does. Only that of type delay has a duration of its own.
type batsimProfile struct {
	Type  string   `json:"type"`
	Delay *float64 `json:"delay,omitempty"`
}

// batsim reads a JSON workload of Batsim as a stream: profiles may stand before the jobs or behind them.
func (in *importer) batsim(content io.Reader) error {
	if err := in.checkFixed(); err != nil {
		return err
	}
	b := &batsimReader{importer: in, decoder: json.NewDecoder(content), profiles: map[string]batsimProfile{}}
	if err := b.read(); err != nil {
		if in.Err() != nil {
			return in.Err()
		}
		return in.problem(0, fmt.Sprintf("is no workload of Batsim: %v, at byte %d", cutShort(err), b.decoder.InputOffset()), `expected {"nb_res": …, "jobs": […], "profiles": {…}}`)
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
	if err := b.expect('{'); err != nil {
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
	if err := b.expect('}'); err != nil {
		return err
	}
	if _, err := b.decoder.Token(); err != io.EOF {
		return errors.New("something follows the workload")
	}
	if !found["jobs"] {
		return errors.New("it has no jobs")
	}
	return nil
}

func (b *batsimReader) expect(delimiter json.Delim) error {
	token, err := b.decoder.Token()
	if err != nil {
		return err
	}
	if token != delimiter {
		return fmt.Errorf("expected %v, found %v", delimiter, token)
	}
	return nil
}

// readJobs keeps what the jobs tell. A job that is no object of the right form is a row that is dropped.
func (b *batsimReader) readJobs() error {
	if err := b.expect('['); err != nil {
		return err
	}
	for b.decoder.More() {
		if b.tally.rows++; b.tally.rows%chunk == 0 && b.Err() != nil {
			return b.Err()
		}
		b.current = batsimJob{Submit: nan, Limit: nan, Devices: nan, Start: nan, Estimate: nan}
		err := b.decoder.Decode(&b.current)
		if err == nil {
			b.job(&b.current)
			continue
		}
		mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok && !errors.Is(err, errText) {
			return err
		}
		field := ""
		if ok {
			field = mistyped.Field
		}
		b.tally.drop("job is not of the form of Batsim", b.tally.rows, cmp.Or(field, err.Error()))
	}
	return b.expect(']')
}

// job keeps a job until its profile is known. Line stands for its place among the jobs.
func (b *batsimReader) job(job *batsimJob) {
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
		return "subtime is not known"
	case !(0 <= devices && devices <= maxCount) || devices != math.Trunc(devices):
		return "res is not a whole number up to 1048576"
	case devices == 0:
		return reasonNoGPU
	}
	return ""
}

// resolve gives every job the duration of its profile.
func (b *batsimReader) resolve() {
	for i := range b.jobs.count {
		r := b.jobs.At(i)
		name := b.named[i]
		profile, found := b.profiles[name]
		reason := ""
		switch {
		case !found:
			reason = "profile does not exist"
		case profile.Type != "delay":
			reason = "profile of type " + strconv.Quote(shorten(profile.Type)) + " has no duration"
		case profile.Delay == nil || !(*profile.Delay <= maxSeconds):
			reason = "profile has no delay"
		default:
			r.Duration = *profile.Delay
			reason = r.fault()
		}
		if reason != "" {
			b.tally.drop(reason, int(r.line), r.Name)
			continue
		}
		b.keep(r)
	}
}
