package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/workload"
)

// storeSchema names the form of a store. It changes when a field changes its meaning or goes away.
const storeSchema = "quartet.state/v1"

var (
	metaBucket    = []byte("meta")    // "run": meta
	roundsBucket  = []byte("rounds")  // round number: observation
	changesBucket = []byte("changes") // round number: []core.Change
	runsBucket    = []byte("runs")    // job name: run
	jobsBucket    = []byte("jobs")    // job id: submission
	ordersBucket  = []byte("orders")  // see cancelOrder and healthOrder
	pendingBucket = []byte("pending") // of a snapshot: what is to be told next
)

var buckets = [...][]byte{metaBucket, roundsBucket, changesBucket, runsBucket, jobsBucket, ordersBucket, pendingBucket}

var metaKey = []byte("run")

// meta is what a store says of its run.
type meta struct {
	Schema    string
	Identity  string
	Config    string   `json:",omitempty"` // resolved
	Devices   []string // what CUDA_VISIBLE_DEVICES calls them, by number
	EpochUnix int64    // nanoseconds: moment 0 of the run
	Complete  bool     // nothing is left to go on with
}

// observation is what a round saw.
type observation struct {
	NowSeconds float64
	Events     []event `json:",omitempty"`
	Heard      []heard `json:",omitempty"`
}

// heard is what a job said of itself that a scheduler after this one must know.
type heard struct {
	Job          core.JobID
	Run          int
	Checkpointed bool `json:",omitempty"`
	Checkpoint   float64
}

// round is one recorded round.
type round struct {
	observation
	Changes []core.Change
}

// run is one start of a job's replicas.
type run struct {
	Number   int // 1 for the first
	Round    int // that decided the seats
	Failures int // of earlier runs
	Lost     int // earlier runs in a row whose keepers did not say how they ended

	// Of a run in the place of one that failed: why it was started, when, and with what progress.
	Why                string  `json:",omitempty"`
	BeganSeconds, From float64 `json:",omitempty"`
	Devices            []int
	Keeper             keeper.Identity
}

// store keeps what must outlive the scheduler. Every method but close returns once its data is on disk.
type store struct {
	db     *bolt.DB
	path   string
	health map[string]core.Health // by node name, as ordered
}

// How long an instance that is just ending is waited for, and how often it is looked for.
const (
	lockWait  = 500 * time.Millisecond
	lookAgain = 20 * time.Millisecond
)

// openStore opens or creates a store, for one instance at a time. A damaged one is set aside when the run is fresh, and a
// core.Diagnostics error otherwise.
func openStore(dir string, fresh bool) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the store: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if info.Mode().Perm()&0o002 != 0 || !ours(info) {
		return nil, core.Diagnostics{{
			Position: core.Position{File: dir}, Summary: "the folder is another user's, or everybody may write to it: what is in it could be theirs",
			Hint: "take a folder of your own, and chmod o-w it",
		}}
	}
	s := &store{path: filepath.Join(dir, storeFile), health: map[string]core.Health{}}
	err := s.open()
	if err == nil {
		return s, nil
	}
	refusal := core.Diagnostic{Position: core.Position{File: s.path}}
	if errors.Is(err, errLocked) {
		refusal.Summary, refusal.Hint = "another scheduler runs on this store", "one at a time: end it, or give the run another name with --name"
		return nil, core.Diagnostics{refusal}
	}
	if errors.Is(err, errUnchecked) {
		return nil, err
	}
	if !fresh {
		refusal.Summary, refusal.Hint = fmt.Sprintf("the store is damaged: %v", err), "--fresh stops its jobs, sets it aside and begins anew"
		return nil, core.Diagnostics{refusal}
	}
	if err := os.Rename(s.path, s.path+".damaged"); err != nil {
		return nil, fmt.Errorf("set the damaged store aside: %w", err)
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("begin a new store: %w", err)
	}
	return s, nil
}

var errLocked = errors.New("another process holds its lock")

func (s *store) open() (err error) {
	file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			unlock(file)     // the memory map that a panic leaves behind would hold the lock
			_ = file.Close() // it may be closed already
		}
	}()
	for wait := lockWait; !lock(file); wait -= lookAgain {
		if wait <= 0 {
			return errLocked
		}
		time.Sleep(lookAgain)
	}
	return s.guard(func() (err error) {
		if err := checkStore(file); err != nil {
			return err
		}
		opened := false
		options := &bolt.Options{Timeout: lockWait, OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			if opened { // for a snapshot
				return os.OpenFile(name, flag, mode)
			}
			opened = true
			return file, nil
		}}
		if s.db, err = bolt.Open(s.path, 0o600, options); err != nil {
			return err
		}
		return s.db.Update(func(tx *bolt.Tx) error {
			if name, _ := tx.Cursor().First(); name == nil {
				return makeBuckets(tx)
			}
			return nil
		})
	})
}

// guard turns what a damaged file does to a memory map into an error.
func (s *store) guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return do()
}

func (s *store) close() error { return s.db.Close() }

// meta is nil for a new store.
func (s *store) meta() (m *meta, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		found := meta{}
		there, err := get(tx, metaBucket, metaKey, &found)
		if there {
			m = &found
		}
		return err
	})
	return m, err
}

func (s *store) setMeta(m *meta) error {
	return s.db.Update(func(tx *bolt.Tx) error { return put(tx, metaBucket, metaKey, m) })
}

// reset forgets everything and begins a new run.
func (s *store) reset(m *meta) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
		if err := makeBuckets(tx); err != nil {
			return err
		}
		return put(tx, metaBucket, metaKey, m)
	})
}

// round records what a round saw and decided.
func (s *store) round(n int, o *observation, changes []core.Change) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		return errors.Join(put(tx, roundsBucket, key(n), o), put(tx, changesBucket, key(n), recordedChanges(changes)))
	})
}

// begin records runs, all or none.
func (s *store) begin(started []*job) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, j := range started {
			if err := put(tx, runsBucket, []byte(j.Spec.Name), j.run); err != nil {
				return err
			}
		}
		return nil
	})
}

// history reads the recorded rounds, in order.
func (s *store) history() (rounds []round, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(roundsBucket).ForEach(func(k, sealed []byte) error {
			var r round
			if err := decode(roundsBucket, k, sealed, &r.observation); err != nil {
				return err
			}
			var changes []change
			if there, err := get(tx, changesBucket, k, &changes); err != nil || !there {
				return errors.Join(err, fmt.Errorf("round %d has no decision", len(rounds)+1))
			}
			for _, c := range changes {
				r.Changes = append(r.Changes, core.Change(c))
			}
			rounds = append(rounds, r)
			if int(binary.BigEndian.Uint64(k)) != len(rounds) {
				return fmt.Errorf("round %d is missing", len(rounds))
			}
			return nil
		})
	})
	return rounds, err
}

// runs reads the last run of each job, by name.
func (s *store) runs() (runs map[string]run, err error) {
	runs = map[string]run{}
	err = s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(runsBucket).ForEach(func(name, sealed []byte) error {
			var r run
			if err := decode(runsBucket, name, sealed, &r); err != nil {
				return err
			}
			runs[string(name)] = r
			return nil
		})
	})
	return runs, err
}

func key(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// submission is a job that was submitted to a running scheduler.
type submission struct {
	Spec    core.JobSpec
	Process workload.Process
}

// submit records jobs, all or none.
func (s *store) submit(jobs []*workload.Job) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, j := range jobs {
			if err := put(tx, jobsBucket, key(int(j.Spec.ID)), submission{j.Spec, j.Process}); err != nil {
				return err
			}
		}
		return nil
	})
}

// What an order is kept under: the id of a cancelled job, or the name of a node.
const (
	cancelOrder = "cancel/"
	healthOrder = "health/"
)

func (s *store) cancel(id core.JobID) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		return put(tx, ordersBucket, []byte(cancelOrder+strconv.Itoa(int(id))), true)
	})
}

func (s *store) setHealth(node string, h core.Health) error {
	err := s.db.Update(func(tx *bolt.Tx) error { return put(tx, ordersBucket, []byte(healthOrder+node), h) })
	if err == nil {
		s.health[node] = h
	}
	return err
}

// recall reads into a backend what it is to go on with.
func (s *store) recall(b *Backend) (err error) {
	return s.guard(func() error {
		if err := s.db.View(func(tx *bolt.Tx) error {
			if err := tx.Bucket(jobsBucket).ForEach(func(k, sealed []byte) error {
				var j submission
				if err := decode(jobsBucket, k, sealed, &j); err != nil {
					return err
				}
				if int(j.Spec.ID) != len(b.jobs) || int(binary.BigEndian.Uint64(k)) != len(b.jobs) {
					return fmt.Errorf("job %d is missing", len(b.jobs))
				}
				b.know(&workload.Job{Spec: j.Spec, Process: j.Process})
				return nil
			}); err != nil {
				return err
			}
			return tx.Bucket(ordersBucket).ForEach(func(k, sealed []byte) error { return s.recallOrder(b, string(k), sealed) })
		}); err != nil {
			return err
		}
		b.history, err = s.history()
		return err
	})
}

func (s *store) recallOrder(b *Backend, order string, sealed []byte) error {
	if job, cancelled := strings.CutPrefix(order, cancelOrder); cancelled {
		id, err := strconv.Atoi(job)
		if err != nil || id < 0 || id >= len(b.jobs) {
			return fmt.Errorf("unknown job %q is cancelled", job)
		}
		b.jobs[id].cancelled = true
		return nil
	}
	var h core.Health
	if err := decode(ordersBucket, []byte(order), sealed, &h); err != nil {
		return err
	}
	s.health[strings.TrimPrefix(order, healthOrder)] = h
	return nil
}

// moment holds on to the store as it is now, until writeSnapshot is done with it.
func (s *store) moment() (*bolt.Tx, error) { return s.db.Begin(false) }

// writeSnapshot copies the store as it was at a moment into a new file, together with what was to be told next. The store may be
// written to meanwhile.
func writeSnapshot(path string, moment *bolt.Tx, pending *observation) error {
	if err := errors.Join(moment.CopyFile(path, 0o600), moment.Rollback()); err != nil {
		return err
	}
	copied := &store{path: path, health: map[string]core.Health{}}
	if err := copied.open(); err != nil {
		return err
	}
	err := copied.db.Update(func(tx *bolt.Tx) error { return put(tx, pendingBucket, metaKey, pending) })
	return errors.Join(err, copied.close())
}

// pending is what was to be told next when a snapshot was made; nil when this is none.
func (s *store) pending() (o *observation, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		found := observation{}
		there, err := get(tx, pendingBucket, metaKey, &found)
		if there {
			o = &found
		}
		return err
	})
	return o, err
}
