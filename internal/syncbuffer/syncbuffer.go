// Package syncbuffer collects what several goroutines write, for tests that read a log while it grows.
package syncbuffer

import (
	"bytes"
	"sync"
)

// Buffer is a bytes.Buffer that may be written and read from several goroutines. Its zero value is empty and ready.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends p; it never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
