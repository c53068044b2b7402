package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// The buckets of a journal. A backend may have others in the same store.
const (
	metaBucket    = "meta"    // "run": Meta; "learned": []core.Learned; eraKey: era
	roundsBucket  = "rounds"  // round number: Seen
	changesBucket = "changes" // round number: []change
	jobsBucket    = "jobs"    // job id: submission
	ordersBucket  = "orders"  // see cancelOrder and healthOrder
	pendingBucket = "pending" // of a snapshot: what is to be told next
)

// Buckets lists the buckets of a journal.
func Buckets() []string {
	return []string{metaBucket, roundsBucket, changesBucket, jobsBucket, ordersBucket, pendingBucket}
}

// Keys that stand for one record.
const (
	runKey     = "run"
	learnedKey = "learned"
	eraKey     = "era/" // and the number of its first round
)

// What an order is kept under: the id of a cancelled job, or the name of a node.
const (
	cancelOrder = "cancel/"
	healthOrder = "health/"
)

// Log is the journal of one run. Recall reads what earlier schedulers recorded; then Repeat returns it, round by round, and
// Record goes on. Its methods are for one goroutine, but for those that write orders and submissions.
type Log struct {
	store    Store
	meta     *Meta
	identity string // of the composition that decides now
	config   string
	files    []core.FileRead

	history []Round // of earlier schedulers
	eras    []era
	learned []core.Learned
	rounds  int // told
}

var _ core.Memory = (*Log)(nil)

// Open opens the journal in a store for a composition, which is known by its identity and its resolved config.
func Open(s Store, identity, config string) *Log {
	return &Log{store: s, identity: identity, config: config}
}

// Rest records which files the components of the composition read: a run is repeated only with the same ones.
func (l *Log) Rest(files []core.FileRead) { l.files = files }

func number(n int) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// ReadMeta is nil for a journal without a run. The error is an *OtherVersionError for one of another version.
func ReadMeta(r Records) (m *Meta, err error) {
	record, err := r.Get(metaBucket, runKey)
	if err = errors.Join(err, CheckVersion(record)); err != nil {
		return nil, err
	}
	var found Meta
	there, err := get(r, metaBucket, runKey, &found)
	if !there {
		return nil, err
	}
	return &found, nil
}

// Meta reads what the journal says of its run; nil for none.
func (l *Log) Meta() (m *Meta, err error) {
	err = l.store.View(func(r Records) error {
		m, err = ReadMeta(r)
		return err
	})
	return m, err
}

// SetMeta replaces what the journal says of its run.
func (l *Log) SetMeta(m *Meta) error {
	l.meta = m
	return l.store.Update(func(w Writable) error { return put(w, metaBucket, runKey, m) })
}

// Reset forgets everything and begins a run.
func (l *Log) Reset(m *Meta) error {
	m.Schema, m.Identity, m.Config, m.Files = Schema, l.identity, l.config, l.files
	l.meta, l.history, l.eras, l.learned, l.rounds = m, nil, nil, nil, 0
	return l.store.Update(func(w Writable) error { return errors.Join(w.Clear(), put(w, metaBucket, runKey, m)) })
}

// Recalled is what earlier schedulers recorded besides their rounds.
type Recalled struct {
	Jobs      []workload.Job         // that were submitted, by id
	Cancelled []core.JobID           // jobs whose end was ordered
	Health    map[string]core.Health // by node name, as ordered
}

// Recall reads what earlier schedulers recorded in a run that began with so many jobs. What is observed and decided in the rounds
// is about its jobs and nodes.
func (l *Log) Recall(jobs int) (found *Recalled, err error) {
	found = &Recalled{Health: map[string]core.Health{}}
	return found, l.store.View(func(r Records) error {
		if l.meta, err = ReadMeta(r); err != nil {
			return err
		}
		if l.meta == nil {
			return errors.New("it holds no run")
		}
		if err := each(r, jobsBucket, func(key string, s *submission) error {
			if next := jobs + len(found.Jobs); key != number(next) || int(s.Spec.ID) != next {
				return fmt.Errorf("job %d is missing", next)
			}
			found.Jobs = append(found.Jobs, workload.Job{Spec: s.Spec, Process: s.Process})
			return nil
		}); err != nil {
			return err
		}
		jobs += len(found.Jobs)
		if err := r.Each(ordersBucket, func(order string, text []byte) error { return found.order(order, text, jobs) }); err != nil {
			return err
		}
		if err := l.readRounds(r); err != nil {
			return err
		}
		if err := l.check(jobs, len(l.meta.Nodes)); err != nil {
			return err
		}
		return l.readEras(r)
	})
}

func (f *Recalled) order(order string, text []byte, jobs int) error {
	if job, cancelled := strings.CutPrefix(order, cancelOrder); cancelled {
		id, err := strconv.Atoi(job)
		if err != nil || id < 0 || id >= jobs {
			return fmt.Errorf("unknown job %q is cancelled", job)
		}
		f.Cancelled = append(f.Cancelled, core.JobID(id))
		return nil
	}
	h, err := strconv.ParseUint(string(text), 10, 8)
	if err != nil {
		return fmt.Errorf("health of %q: %w", order, err)
	}
	f.Health[strings.TrimPrefix(order, healthOrder)] = core.Health(h)
	return nil
}

func (l *Log) readRounds(r Records) error {
	l.history, l.rounds = nil, 0
	return each(r, roundsBucket, func(key string, seen *Seen) error {
		n := len(l.history) + 1
		if key != number(n) {
			return fmt.Errorf("round %d is missing", n)
		}
		var changes []change
		if there, err := get(r, changesBucket, key, &changes); err != nil || !there {
			return errors.Join(err, fmt.Errorf("round %d has no decision", n))
		}
		round := Round{Seen: *seen}
		for _, c := range changes {
			round.Changes = append(round.Changes, core.Change(c))
		}
		l.history = append(l.history, round)
		return nil
	})
}

func (l *Log) readEras(r Records) error {
	l.eras, l.learned = []era{{Round: 1, Identity: l.meta.Identity, Files: l.meta.Files}}, nil
	if _, err := get(r, metaBucket, learnedKey, &l.learned); err != nil {
		return err
	}
	return r.Each(metaBucket, func(key string, _ []byte) error {
		if !strings.HasPrefix(key, eraKey) {
			return nil
		}
		var e era
		if _, err := get(r, metaBucket, key, &e); err != nil {
			return err
		}
		l.eras = append(l.eras, e)
		return nil
	})
}

// check refuses rounds that tell of jobs and nodes that are not there. Without nodes in the journal, they are not looked at.
func (l *Log) check(jobs, nodes int) error {
	unknown := func(id core.JobID) bool { return id < 0 || int(id) >= jobs }
	for i := range l.history {
		round := &l.history[i]
		for _, e := range round.Events {
			if e.Kind == core.NodeAdded && int(e.Node) == nodes {
				nodes++
			}
			if !e.Kind.OfNode() && unknown(e.Job) || e.Node < 0 || nodes > 0 && int(e.Node) >= nodes {
				return fmt.Errorf("round %d names unknown job %d or node %d", i+1, e.Job, e.Node)
			}
		}
		for _, said := range round.Said {
			if unknown(said.Job) {
				return fmt.Errorf("round %d names unknown job %d", i+1, said.Job)
			}
		}
		for _, c := range round.Changes {
			if unknown(c.Job) {
				return fmt.Errorf("round %d decides about unknown job %d", i+1, c.Job)
			}
		}
	}
	return nil
}

// LastSeconds is the moment of the last recorded round; 0 for none.
func (l *Log) LastSeconds() float64 {
	if len(l.history) == 0 {
		return 0
	}
	return l.history[len(l.history)-1].NowSeconds
}

// Rounds is how many rounds were observed.
func (l *Log) Rounds() int { return l.rounds }

// Replaying reports whether the next round is one that an earlier scheduler held.
func (l *Log) Replaying() bool { return l.rounds < len(l.history) }

// Repeated reports whether the last round is one that an earlier scheduler held.
func (l *Log) Repeated() bool { return l.rounds <= len(l.history) }

// Repeat returns the next recorded round, with what was decided in it, and what jobs said meanwhile.
func (l *Log) Repeat(spec func(core.JobID) *core.JobSpec) (core.Observation, []Said) {
	round := &l.history[l.rounds]
	l.rounds++
	seen := core.Observation{NowSeconds: round.NowSeconds, Events: make([]core.Event, len(round.Events))}
	for i := range round.Events {
		seen.Events[i] = round.Events[i].of(spec)
	}
	now := l.eras[len(l.eras)-1]
	seen.Decided = &core.Decided{
		Changes: round.Changes, Same: now.Identity == l.identity && l.rounds >= now.Round, Learned: now.Learned, Files: now.Files,
	}
	if how, err := core.SharingOf(round.Sharing); err == nil {
		seen.Decided.Sharing = &how
	}
	return seen, round.Said
}

// Same takes the composition that decided last for the one that decides now. Their identities may differ where only the program, or how an input is
// written, is another.
func (l *Log) Same() { l.eras[len(l.eras)-1].Identity = l.identity }

// BeginRound counts a new round, and returns its number.
func (l *Log) BeginRound() int {
	l.rounds++
	return l.rounds
}

// Record records what the latest round saw and decided.
func (l *Log) Record(seen *Seen, changes []core.Change) error {
	key := number(l.rounds)
	err := l.store.Update(func(w Writable) error {
		return errors.Join(put(w, roundsBucket, key, seen), put(w, changesBucket, key, recorded(changes)))
	})
	if err != nil {
		return fmt.Errorf("record round %d: %w", l.rounds, err)
	}
	return nil
}

// Learned is what was last kept.
func (l *Log) Learned() []core.Learned { return l.learned }

// Keep replaces what is kept, if it changed.
func (l *Log) Keep(learned []core.Learned) error {
	if slices.EqualFunc(learned, l.learned, func(a, b core.Learned) bool {
		return a.Component == b.Component && slices.Equal(a.Data, b.Data)
	}) {
		return nil
	}
	l.learned = learned
	return l.store.Update(func(w Writable) error { return put(w, metaBucket, learnedKey, learned) })
}

// Begin records that a composition decides from a round on.
func (l *Log) Begin(round int, c *core.Composition, from []core.Learned) error {
	identity, config, files := l.identity, l.config, l.files
	if c.Identity != "" {
		identity, config, files = c.Identity, c.Config, c.Files
	}
	next := era{round, identity, from, files}
	meta := *l.meta
	meta.Config = config
	if err := l.store.Update(func(w Writable) error {
		return errors.Join(put(w, metaBucket, eraKey+number(round), next), put(w, metaBucket, runKey, &meta))
	}); err != nil {
		return err
	}
	l.identity, l.config, l.files, l.meta.Config = identity, config, files, config
	l.eras = append(l.eras, next)
	return nil
}

// Submit records jobs, all or none.
func (l *Log) Submit(jobs []*workload.Job) error {
	return l.store.Update(func(w Writable) error {
		for _, j := range jobs {
			if err := put(w, jobsBucket, number(int(j.Spec.ID)), submission{j.Spec, j.Process}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Cancel records that a job is cancelled.
func (l *Log) Cancel(id core.JobID) error {
	return l.store.Update(func(w Writable) error { return put(w, ordersBucket, cancelOrder+strconv.Itoa(int(id)), true) })
}

// SetHealth records the health that a node was given.
func (l *Log) SetHealth(node string, h core.Health) error {
	return l.store.Update(func(w Writable) error { return put(w, ordersBucket, healthOrder+node, h) })
}

// History is the rounds that earlier schedulers recorded, as Recall read them.
func (l *Log) History() []Round { return l.history }
