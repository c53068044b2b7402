package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// MaxLine bounds a line, its end included, in bytes.
const MaxLine = 64 << 10

// line is one of FromJob and ToJob.
type line[L any] interface {
	*L
	Validate() error
}

// reader reads lines.
type reader[L any, P line[L]] struct{ from *bufio.Reader }

func newReader[L any, P line[L]](from io.Reader) reader[L, P] {
	return reader[L, P]{bufio.NewReader(from)} // grows line by line: a scheduler has thousands of connections
}

// next reads a line. At the end of the connection it is io.EOF; whatever else is wrong is said in words.
func (r reader[L, P]) next() (L, error) {
	var l L
	text, err := r.text()
	switch {
	case errors.Is(err, io.EOF) && len(text) > 0:
		return l, errors.New("read line: connection ended in the middle")
	case err != nil:
		return l, err
	}
	err = json.Unmarshal(text, &l)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		if replaced := withNull(text); !bytes.Equal(replaced, text) {
			err = json.Unmarshal(replaced, &l) // nothing was taken before: the syntax is checked first
		}
	}
	if err != nil {
		return l, fmt.Errorf("read line: %w", err)
	}
	return l, P(&l).Validate()
}

// text is the next line, its end included, as it was received. It holds until the next one is read.
func (r reader[L, P]) text() ([]byte, error) {
	text, err := r.from.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	long := bytes.Clone(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) >= MaxLine {
			return nil, fmt.Errorf("read line: longer than %d bytes", MaxLine)
		}
		text, err = r.from.ReadSlice('\n')
		long = append(long, text...)
	}
	if len(long) > MaxLine {
		return nil, fmt.Errorf("read line: longer than %d bytes", MaxLine)
	}
	return long, err
}

// writeLine writes a line.
func writeLine(to io.Writer, l any) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	if len(text) >= MaxLine {
		return fmt.Errorf("write line: longer than %d bytes", MaxLine)
	}
	_, err = to.Write(append(text, '\n'))
	return err
}

// hangUp closes a connection of which nothing more is wanted, without a word and without waiting: TLS would write that it ends,
// and a side that does not read could hold that up.
func hangUp(c net.Conn) {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapped.NetConn()
	}
	_ = c.Close()
}

// outbox holds the line to be written next: the latest message of each kind. Nobody waits to put something in.
type outbox[L any] struct {
	mutex sync.Mutex
	line  L
	full  bool
	ready chan struct{} // of capacity 1: there is something to take
}

func newOutbox[L any]() *outbox[L] { return &outbox[L]{ready: make(chan struct{}, 1)} }

func (o *outbox[L]) put(change func(*L)) {
	o.mutex.Lock()
	change(&o.line)
	o.full = true
	o.mutex.Unlock()
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take empties the box; false when it was empty.
func (o *outbox[L]) take() (L, bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var none L
	l, full := o.line, o.full
	o.line, o.full = none, false
	return l, full
}

// add puts the messages of another line into one, over those of their kinds; metrics follow those that are there, of which the oldest are dropped.
func (m *FromJob) add(o FromJob) {
	if len(o.Metrics) > 0 {
		m.Metrics = slices.Concat(m.Metrics, o.Metrics)
		m.Metrics = m.Metrics[max(len(m.Metrics)-mostMetrics, 0):]
	}
	replace(&m.Hello, o.Hello)
	replace(&m.Report, o.Report)
	replace(&m.Checkpointed, o.Checkpointed)
	replace(&m.Done, o.Done)
}

// add puts the messages of another line into one, over those of their kinds.
func (m *ToJob) add(o ToJob) {
	replace(&m.Tuning, o.Tuning)
	replace(&m.World, o.World)
	replace(&m.Checkpoint, o.Checkpoint)
	replace(&m.Stop, o.Stop)
	replace(&m.Refused, o.Refused)
}

func replace[M any](at **M, by *M) {
	if by != nil {
		*at = by
	}
}
