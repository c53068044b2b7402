package journal

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// A snapshot is the records of a journal as of a moment, with what was to be told next: a line that names its form; bucket, key
// and text of each record behind its length; an empty bucket; a checksum of all of it.
const snapshotForm = "quartet.snapshot/v1\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Held is a journal held on to, for a snapshot.
type Held struct {
	moment  Moment
	pending *Seen
}

// Hold holds on to the journal as it is now, until it is written or released. The journal may be written to meanwhile.
func (l *Log) Hold(pending *Seen) (*Held, error) {
	m, err := l.store.Moment()
	if err != nil {
		return nil, err
	}
	return &Held{m, pending}, nil
}

// Release lets go of the records, which are not read afterwards.
func (h *Held) Release() error { return h.moment.Release() }

// Write writes the snapshot and lets go.
func (h *Held) Write(to io.Writer) error {
	sum := crc32.New(castagnoli)
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 64<<10)
	err := h.write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		_, err = to.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	}
	return errors.Join(err, h.Release())
}

func (h *Held) write(w *bufio.Writer) error {
	if _, err := w.WriteString(snapshotForm); err != nil {
		return err
	}
	record := func(parts ...string) error {
		for _, part := range parts {
			if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(part)))); err != nil {
				return err
			}
			if _, err := w.WriteString(part); err != nil {
				return err
			}
		}
		return nil
	}
	for _, bucket := range Buckets() {
		if err := h.moment.Each(bucket, func(key string, text []byte) error { return record(bucket, key, string(text)) }); err != nil {
			return err
		}
	}
	told := overlay{base: memory{}, written: memory{}}
	if err := put(&told, pendingBucket, runKey, h.pending); err != nil {
		return err
	}
	return errors.Join(record(pendingBucket, runKey, string(told.written[pendingBucket][runKey])), record(""))
}

// longestPart bounds what is believed of a length in a snapshot.
const longestPart = 1 << 30

// ReadSnapshot reads a snapshot into memory.
func ReadSnapshot(from io.Reader) (*Memory, error) {
	sum := crc32.New(castagnoli)
	r := &summing{bufio.NewReaderSize(from, 64<<10), sum.Write}
	form := make([]byte, len(snapshotForm))
	if _, err := io.ReadFull(r, form); err != nil || string(form) != snapshotForm {
		return nil, errors.New("this is no snapshot of a running scheduler")
	}
	m := NewMemory()
	part := func() ([]byte, error) {
		n, err := binary.ReadUvarint(r)
		if err != nil || n > longestPart {
			return nil, errors.Join(err, fmt.Errorf("a length of %d", n))
		}
		text, err := io.ReadAll(io.LimitReader(r, int64(n)))
		if err == nil && len(text) < int(n) {
			err = io.ErrUnexpectedEOF
		}
		return text, err
	}
	for {
		var parts [3][]byte
		var err error
		for i := range parts {
			if parts[i], err = part(); err != nil {
				return nil, fmt.Errorf("the snapshot is damaged: %w", err)
			}
			if i == 0 && len(parts[0]) == 0 {
				want, got := sum.Sum32(), make([]byte, 4)
				if _, err := io.ReadFull(r, got); err != nil || binary.BigEndian.Uint32(got) != want {
					return nil, errors.Join(err, errors.New("the snapshot is damaged"))
				}
				return m, nil
			}
		}
		m.records.put(string(parts[0]), string(parts[1]), parts[2])
	}
}

// summing is a reader whose bytes are summed up as they are taken.
type summing struct {
	*bufio.Reader
	sum func([]byte) (int, error)
}

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	_, _ = s.sum(p[:n]) // a hash never fails
	return n, err
}

func (s *summing) ReadByte() (byte, error) {
	b, err := s.Reader.ReadByte()
	if err == nil {
		_, _ = s.sum([]byte{b}) // a hash never fails
	}
	return b, err
}

// Preview is a backend that repeats what a scheduler saw, adds what it would observe next, and only listens to what is decided
// then: a pipeline that runs on it finds out what the next round would do. Nothing that runs is touched.
type Preview struct {
	log          *Log
	specs        []*core.JobSpec
	capabilities []core.Capability
	pending      core.Observation
	told         bool
	changes      []core.Change
}

var _ core.Backend = (*Preview)(nil)

// NewPreview previews a run that has not begun: its first round sees the jobs that are submitted at moment 0.
func NewPreview(w *workload.Workload, capabilities []core.Capability) *Preview {
	p := &Preview{log: Open(NewMemory(), "", ""), capabilities: capabilities}
	for i := range w.Jobs {
		spec := w.Jobs[i].KnownSpec()
		if spec.SubmitSeconds > 0 {
			continue
		}
		e := Event{Kind: core.JobSubmitted, Job: spec.ID, Checkpointing: w.Jobs[i].Checkpointing()}
		p.pending.Events = append(p.pending.Events, e.of(func(core.JobID) *core.JobSpec { return spec }))
	}
	return p
}

// Preview previews the next round of the run of a snapshot, which began with some jobs.
func (l *Log) Preview(w *workload.Workload, capabilities []core.Capability) (*Preview, error) {
	found, err := l.Recall(len(w.Jobs))
	if err != nil {
		return nil, err
	}
	p := &Preview{log: l, capabilities: capabilities}
	for _, jobs := range [][]workload.Job{w.Jobs, found.Jobs} {
		for i := range jobs {
			p.specs = append(p.specs, jobs[i].KnownSpec())
		}
	}
	var pending Seen
	if err := l.store.View(func(r Records) error {
		there, err := get(r, pendingBucket, runKey, &pending)
		if err == nil && !there {
			err = errors.New("it holds nothing about the next round")
		}
		return err
	}); err != nil {
		return nil, err
	}
	p.pending.NowSeconds = max(pending.NowSeconds, l.LastSeconds())
	for i := range pending.Events {
		e := &pending.Events[i]
		if !e.Kind.OfNode() && (e.Job < 0 || int(e.Job) >= len(p.specs)) {
			return nil, fmt.Errorf("the next round names unknown job %d", e.Job)
		}
		p.pending.Events = append(p.pending.Events, e.of(p.spec))
	}
	return p, nil
}

func (p *Preview) spec(id core.JobID) *core.JobSpec { return p.specs[id] }

// Capabilities are those of the backend.
func (p *Preview) Capabilities() []core.Capability { return p.capabilities }

// Next repeats the recorded rounds, and returns one more.
func (p *Preview) Next(ctx context.Context, _ core.Wake) (core.Observation, error) {
	switch {
	case ctx.Err() != nil:
		return core.Observation{}, ctx.Err()
	case p.log.Replaying():
		seen, _ := p.log.Repeat(p.spec)
		return seen, nil
	case p.told:
		return core.Observation{}, io.EOF
	}
	p.told = true
	return p.pending, nil
}

// Apply keeps the changes of the round that is not recorded.
func (p *Preview) Apply(_ context.Context, changes []core.Change) error {
	if p.told {
		p.changes = slices.Clone(changes)
	}
	return nil
}

// Changes are what the next round would do.
func (p *Preview) Changes() []core.Change { return p.changes }
