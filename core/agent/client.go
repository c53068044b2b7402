package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// How long a client waits before it tries again to reach the scheduler, at first and at most, and for what it said to
// be written when it is closed.
const (
	firstWait  = 50 * time.Millisecond
	longWait   = 5 * time.Second
	flushLimit = time.Second
)

// Client is the job's side. A nil Client is one without a scheduler: it says nothing and receives nothing. Its methods
// may be called at any time from any goroutine, and but for Close none waits.
//
// When the connection is lost, because the scheduler restarts, the client connects anew and repeats what it last said.
type Client struct {
	environment Environment

	out    *outbox[FromJob]
	in     *outbox[ToJob]
	cancel context.CancelFunc
	closed chan struct{} // closing has begun
	gone   chan struct{} // the goroutine has ended

	once sync.Once
	said FromJob // the latest of each kind; of the goroutine only

	mutex sync.Mutex
	err   error
}

// Dial begins to talk to the scheduler named in an environment that was read without a problem, and returns nil when
// there is none. It does not wait for the connection.
func Dial(e Environment) *Client {
	if e.Socket == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		environment: e,
		out:         newOutbox[FromJob](), in: newOutbox[ToJob](), cancel: cancel,
		closed: make(chan struct{}), gone: make(chan struct{}),
	}
	go c.run(ctx)
	return c
}

// Report says how the job does. It is an error, and nothing is said, when the report makes no sense.
func (c *Client) Report(r Report) error { return c.say(FromJob{Report: &r}) }

// Metric says what a metric has become, such as the loss, as of a step of the training. A value that is not finite says that the training
// diverged, which is worse than any number. Values are said in their order; of more than 128 that could not be said yet, the oldest are dropped.
func (c *Client) Metric(name string, step, value float64) error {
	return c.say(FromJob{Metrics: []Metric{{Name: name, Step: step, Value: measured(value)}}})
}

// Checkpointed says that a checkpoint is complete.
func (c *Client) Checkpointed(progress float64) error {
	return c.say(FromJob{Checkpointed: &Checkpointed{Progress: progress}})
}

// Done says that all work is done.
func (c *Client) Done() error { return c.say(FromJob{Done: &Done{}}) }

func (c *Client) say(m FromJob) error {
	if err := m.Validate(); err != nil || c == nil {
		return err
	}
	c.out.put(func(l *FromJob) { l.add(m) })
	return nil
}

// Poll returns what the job received since the last call, the latest of each kind. A training loop asks once a step.
func (c *Client) Poll() ToJob {
	if c == nil {
		return ToJob{}
	}
	told, _ := c.in.take()
	return told
}

// Received receives after the scheduler sent something that Poll did not return yet; it never does without a scheduler.
func (c *Client) Received() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.in.ready
}

// Err is what last went wrong with the connection, nil if nothing did. The client goes on trying.
func (c *Client) Err() error {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.err
}

// Close ends the connection once what was said is written, or a second has passed.
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.once.Do(func() {
		close(c.closed)
		limit := time.AfterFunc(flushLimit, c.cancel)
		<-c.gone
		limit.Stop()
		c.cancel()
		c.leaveFinalReport()
	})
	<-c.gone
}

func (c *Client) fail(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.err = err
}

// run connects, again and again, until the client is closed: then once more if something is left to say.
func (c *Client) run(ctx context.Context) {
	defer close(c.gone)
	wait, pause := firstWait, func(d time.Duration) time.Duration { return d }
	if _, remote := scheme(c.environment.Socket); remote {
		pause = newJitter().of // many lose the same scheduler at once
	}
	for last := false; ; {
		conn, hello, err := c.connect(ctx)
		if err == nil {
			var received bool
			if received, err = c.talk(ctx, conn, hello); received {
				wait = firstWait
			}
		}
		if err == nil || last || ctx.Err() != nil {
			return
		}
		c.fail(err)
		select {
		case <-c.closed:
			last = true
		case <-time.After(pause(wait)):
			wait = min(2*wait, longWait)
		}
	}
}

// talk writes and reads on one connection until it fails; nil when the client was closed and all is said. It reports
// whether the scheduler said something other than no.
func (c *Client) talk(ctx context.Context, conn net.Conn, hello *Hello) (received bool, err error) {
	stop := context.AfterFunc(ctx, func() { hangUp(conn) })
	defer stop()
	ended := make(chan struct{})
	var failure error
	go func() {
		defer close(ended)
		received, failure = c.listen(conn)
	}()
	all, err := c.write(conn, hello, ended)
	if all && !endWriting(conn) {
		hangUp(conn)
	}
	<-ended // a scheduler that hung up may have said why
	if all {
		return received, nil
	}
	return received, errors.Join(err, failure)
}

// write says what there is to say until the connection ends. It reports whether the client was closed and all is said.
func (c *Client) write(conn net.Conn, hello *Hello, ended chan struct{}) (all bool, err error) {
	c.repeat(hello)
	for closing := false; ; {
		if l, full := c.out.take(); full {
			said := slices.Concat(c.said.Metrics, l.Metrics)
			c.said.add(l)
			c.said.Metrics = ascending(said)
			if err := writeLine(conn, l); err != nil {
				return false, err
			}
			continue
		}
		if closing {
			return true, nil
		}
		select {
		case <-ended:
			return false, nil
		case <-c.out.ready:
		case <-c.closed:
			closing = true
		}
	}
}

// ascending are the values of metrics without those that were told again: of each one, those of steps that grow up to the last. Of too many, they are the last of each metric
// and the latest of the rest.
func ascending(metrics []Metric) []Metric {
	least := map[string]float64{} // step of each metric after which nothing before counts
	for _, m := range metrics {
		least[m.Name] = 0
	}
	room := mostMetrics - len(least)
	clear(least)
	var kept []Metric
	for _, m := range slices.Backward(metrics) {
		step, known := least[m.Name]
		if known && (m.Step >= step || room <= 0) {
			continue
		}
		if known {
			room--
		}
		least[m.Name] = m.Step
		kept = append(kept, m)
	}
	slices.Reverse(kept)
	return kept
}

// leaveFinalReport leaves what was said last for a scheduler that was not there, or was killed before it had recorded it.
func (c *Client) leaveFinalReport() {
	if c.environment.Rank != 0 || c.environment.Rendezvous == "" {
		return
	}
	report, metrics := c.said, c.said.Metrics
	if l, full := c.out.take(); full {
		report.add(l)
		metrics = slices.Concat(metrics, l.Metrics)
	}
	report.Hello, report.Metrics = nil, ascending(metrics)
	if err := writeFinalReport(c.environment.Rendezvous, report); err != nil {
		c.fail(err)
	}
}

// repeat puts what the scheduler must know under what is to be said next.
func (c *Client) repeat(hello *Hello) {
	c.said.Hello = hello
	c.out.put(func(l *FromJob) {
		all := c.said
		all.add(*l)
		*l = all
	})
}

// listen reads until the connection ends, and ends it when what is said makes no sense.
func (c *Client) listen(conn net.Conn) (received bool, err error) {
	defer hangUp(conn)
	lines := newReader[ToJob](conn)
	for {
		l, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return received, errors.New("the scheduler ended the connection")
		case err != nil:
			return received, err
		case l.Refused != nil:
			return received, errors.New("the scheduler refused: " + l.Refused.Message)
		}
		received = true
		c.in.put(func(told *ToJob) { told.add(l) })
	}
}
