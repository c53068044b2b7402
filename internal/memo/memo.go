// Package memo remembers values of functions that depend on nothing but their arguments, for all runs of a process: those of a
// study ask for much the same.
package memo

import "sync"

// Memo is what a function came to, for the arguments asked last. Several may ask at a time.
type Memo[K comparable, V any] struct {
	most  int
	mutex sync.RWMutex
	known map[K]V
}

// New returns a memo of at most so many values: when it is full it begins anew.
func New[K comparable, V any](most int) *Memo[K, V] {
	return &Memo[K, V]{most: most, known: map[K]V{}}
}

// Of is the value for a key, which is computed when it is not known. Who asks for the same at the same time may compute it too.
func (m *Memo[K, V]) Of(key K, compute func() V) V {
	m.mutex.RLock()
	v, known := m.known[key]
	m.mutex.RUnlock()
	if known {
		return v
	}
	v = compute()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if len(m.known) >= m.most {
		clear(m.known)
	}
	m.known[key] = v
	return v
}
