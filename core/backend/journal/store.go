// Package journal is what a backend remembers for the scheduler that comes next: the jobs that were submitted, the orders that
// were given, what each round saw and decided, which composition decided it and what that had learned. It repeats the rounds
// and what the next one would observe. It belongs to no backend; each brings a store.
package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Store keeps records by bucket and key. Its methods may be called from any goroutine.
type Store interface {
	// View reads records, as of one moment.
	View(read func(Records) error) error
	// Update reads and writes records, all or none, and returns once they outlive the scheduler.
	Update(write func(Writable) error) error
	// Moment holds on to the records as they are now.
	Moment() (Moment, error)
}

// Records are read. What they return is valid during the call that they are given to.
type Records interface {
	// Get returns a record, nil for none.
	Get(bucket, key string) ([]byte, error)
	// Each walks through a bucket in the order of the keys.
	Each(bucket string, do func(key string, record []byte) error) error
}

// Writable are records that are written.
type Writable interface {
	Records
	// Put writes the record of a key in a bucket, in the place of an earlier one.
	Put(bucket, key string, record []byte) error
	// Clear removes every record of every bucket.
	Clear() error
}

// Moment is records as they were at a moment, until it is released.
type Moment interface {
	Records
	// Release lets go of the records, which are not read afterwards.
	Release() error
}

func get(r Records, bucket, key string, into any) (there bool, err error) {
	text, err := r.Get(bucket, key)
	if err != nil || text == nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("record %q of %q: %w", key, bucket, err)
	}
	return true, nil
}

func put(w Writable, bucket, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.Put(bucket, key, text)
}

// each decodes the records of a bucket.
func each[T any](r Records, bucket string, do func(key string, value *T) error) error {
	return r.Each(bucket, func(key string, text []byte) error {
		var value T
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("record %q of %q: %w", key, bucket, err)
		}
		return do(key, &value)
	})
}

// Memory is a store that lasts as long as the process.
type Memory struct {
	mutex   sync.RWMutex
	records memory
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{records: memory{}} }

// View reads records.
func (m *Memory) View(read func(Records) error) error {
	m.mutex.RLock()
	defer m.mutex.RUnlock()
	return read(m.records)
}

// Update writes records, none after an error.
func (m *Memory) Update(write func(Writable) error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	changed := &overlay{base: m.records, written: memory{}}
	if err := write(changed); err != nil {
		return err
	}
	if changed.cleared {
		m.records = memory{}
	}
	for bucket, records := range changed.written {
		for key, record := range records {
			m.records.put(bucket, key, record)
		}
	}
	return nil
}

// Moment copies the records.
func (m *Memory) Moment() (Moment, error) {
	m.mutex.RLock()
	defer m.mutex.RUnlock()
	copied := memory{}
	for bucket, records := range m.records {
		copied[bucket] = maps.Clone(records) // a record is never written to
	}
	return copied, nil
}

// memory is records by bucket and key.
type memory map[string]map[string][]byte

func (m memory) Get(bucket, key string) ([]byte, error) { return m[bucket][key], nil }

func (m memory) Each(bucket string, do func(key string, record []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(m[bucket])) {
		if err := do(key, m[bucket][key]); err != nil {
			return err
		}
	}
	return nil
}

func (m memory) Release() error { return nil }

func (m memory) put(bucket, key string, record []byte) {
	if m[bucket] == nil {
		m[bucket] = map[string][]byte{}
	}
	m[bucket][key] = record
}

// overlay is records with what an update wrote.
type overlay struct {
	base    memory
	cleared bool
	written memory
}

func (o *overlay) Get(bucket, key string) ([]byte, error) {
	if record, ok := o.written[bucket][key]; ok || o.cleared {
		return record, nil
	}
	return o.base.Get(bucket, key)
}

func (o *overlay) Each(bucket string, do func(key string, record []byte) error) error {
	all := memory{}
	if !o.cleared {
		all[bucket] = maps.Clone(o.base[bucket])
	}
	for key, record := range o.written[bucket] {
		all.put(bucket, key, record)
	}
	return all.Each(bucket, do)
}

func (o *overlay) Put(bucket, key string, record []byte) error {
	o.written.put(bucket, key, bytes.Clone(record))
	return nil
}

func (o *overlay) Clear() error {
	o.cleared, o.written = true, memory{}
	return nil
}
