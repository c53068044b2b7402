package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// runsBucket is what the backend keeps besides its journal: run by job name.
const runsBucket = "runs"

// metaBucket is where the count of records is kept, and poolsKey.
const metaBucket = "meta"

// poolsKey is that of what is kept of the pools. A journal passes over it.
const poolsKey = "pools"

// runKey is that of journal.Meta.
const runKey = "run"

var buckets = append(journal.Buckets(), runsBucket)

// run is one start of a job's replicas.
type run struct {
	Number   int // 1 for the first
	Round    int // that decided the seats
	Failures int // of runs so far, by their own exit
	Lost     int // earlier runs in a row whose keepers did not say how they ended

	Losses    int `json:",omitempty"` // runs so far that lost a node, a device or a keeper, where there is a bound on them
	Unstarted int `json:",omitempty"` // runs so far that could not be started, where there is a bound on them
	Shrunk    int `json:",omitempty"` // times that it continued with the replicas that were left when others were killed

	// RetrySeconds is when the job may be tried again, of one that failed, in seconds of the run.
	RetrySeconds float64 `json:",omitempty"`
	// Counted is the round that decided the seats of the last run whose end is counted above; 0 for none.
	Counted int `json:",omitempty"`

	// Of a run that an older scheduler started in the place of one that failed: why, when, and with what progress.
	Why                string   `json:",omitempty"`
	BeganSeconds, From float64  `json:",omitempty"`
	Devices            []int    `json:",omitempty"` // by number, from a scheduler whose devices never changed
	Names              []string // what its devices are called
	Keeper             keeper.Identity
}

// store keeps what must outlive the scheduler. Every method but close returns once its data is on disk.
type store struct {
	db   *bolt.DB
	path string
}

var _ journal.Store = (*store)(nil)

// How long an instance that is just ending is waited for, and how often it is looked for.
const (
	lockWait  = 3 * time.Second // the child of one that was killed may check the store, and takes a moment to die on a busy machine
	lookAgain = 20 * time.Millisecond
)

// openStore opens or creates a store, for one instance at a time. A damaged one is set aside when the run is fresh, and a
// core.Diagnostics error otherwise. One that another instance holds is waited for so long.
func openStore(dir string, fresh bool, wait time.Duration) (*store, error) {
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
	s := &store{path: filepath.Join(dir, storeFile)}
	err := s.open(wait)
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
	if slices.ContainsFunc(machineFaults, func(fault error) bool { return errors.Is(err, fault) }) || errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("open the store: %w", err) // it is as sound as it was
	}
	if !fresh {
		return nil, unreadable(s.path, err)
	}
	if err := os.Rename(s.path, s.path+".damaged"); err != nil {
		return nil, fmt.Errorf("set the damaged store aside: %w", err)
	}
	if err := s.open(wait); err != nil {
		return nil, fmt.Errorf("begin a new store: %w", err)
	}
	return s, nil
}

var errLocked = errors.New("another process holds its lock")

func (s *store) open(wait time.Duration) (err error) {
	file, err := inputfile.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	begins := false
	defer func() {
		if err != nil {
			unlock(file)     // the memory map that a panic leaves behind would hold the lock
			_ = file.Close() // it may be closed already
			if begins {
				s.unbegin()
			}
		}
	}()
	for ; !lock(file); wait -= lookAgain {
		if wait <= 0 {
			return errLocked
		}
		time.Sleep(lookAgain)
	}
	if info, err := file.Stat(); err == nil {
		begins = info.Size() == 0
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
		empty := false
		if err := s.db.View(func(tx *bolt.Tx) error {
			name, _ := tx.Cursor().First()
			empty = name == nil
			return nil
		}); err != nil || !empty {
			return err // a store that is only looked at stays as it is, to the byte
		}
		return s.db.Update(makeBuckets)
	})
}

// unbegin empties a store that could not be made whole, or the next one would take it for damaged. Another scheduler may have made
// it its own meanwhile.
func (s *store) unbegin() {
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if !lock(file) {
		return
	}
	if err := checkStore(file); err != nil && !errors.Is(err, errUnchecked) {
		_ = file.Truncate(0) // best effort: that there is no store is told
	}
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

// View reads records.
func (s *store) View(read func(journal.Records) error) error {
	return s.guard(func() error { return s.db.View(func(tx *bolt.Tx) error { return read(records{tx}) }) })
}

// Update writes records, and returns once they are on disk.
func (s *store) Update(write func(journal.Writable) error) error {
	return s.db.Update(func(tx *bolt.Tx) error { return write(records{tx}) })
}

// Moment holds on to the store as it is now.
func (s *store) Moment() (journal.Moment, error) {
	tx, err := s.db.Begin(false)
	if err != nil {
		return nil, err
	}
	return records{tx}, nil
}

// begin records runs, all or none.
func (s *store) begin(started []*job) error {
	return s.Update(func(w journal.Writable) error {
		for _, j := range started {
			text, err := json.Marshal(j.run)
			if err != nil {
				return err
			}
			if err := w.Put(runsBucket, j.Spec.Name, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepPools replaces what is kept of the pools.
func (s *store) keepPools(r *poolRecord) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.Update(func(w journal.Writable) error { return w.Put(metaBucket, poolsKey, text) })
}

// pools reads what is kept of the pools; nil for nothing.
func (s *store) pools() (*poolRecord, error) { return readPools(s) }

func readPools(s journal.Store) (found *poolRecord, err error) {
	return found, s.View(func(r journal.Records) error {
		text, err := r.Get(metaBucket, poolsKey)
		if err != nil || text == nil {
			return err
		}
		found = new(poolRecord)
		return json.Unmarshal(text, found)
	})
}

// runs reads the last run of each job, by name.
func (s *store) runs() (runs map[string]run, err error) {
	runs = map[string]run{}
	return runs, s.View(func(r journal.Records) error {
		return r.Each(runsBucket, func(name string, text []byte) error {
			var r run
			if err := json.Unmarshal(text, &r); err != nil {
				return err
			}
			runs[name] = r
			return nil
		})
	})
}
