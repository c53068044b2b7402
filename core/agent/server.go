package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/internal/unixsocket"
)

// How long a connection may take to say who it is, and to be told why it is ended.
const (
	helloLimit  = 10 * time.Second
	refuseLimit = time.Second
)

// mostStrangers is how many connections may be open that did not say who they are: the oldest makes room for another, so that
// a job that opens them without end takes the scheduler's descriptors from nobody.
const mostStrangers = 128

// mostConnections is half of the descriptors that this process may have.
func mostConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 2*mostEver {
		return mostEver
	}
	return int(limit.Cur / 2)
}

const mostEver = 1 << 20

// Event is what a server tells of a replica: what it said, or that it went.
type Event struct {
	Job  string // empty for a connection that never said who it is
	Rank int
	FromJob
	Gone bool  // the connection ended; not told of one that was replaced by another of its rank, or forgotten
	Err  error // why the server ended it; nil when the replica did
}

// Server is the scheduler's side. Its methods may be called from any goroutine and do not wait for a job.
type Server struct {
	path     string
	listener net.Listener
	events   chan Event
	closing  chan struct{}
	work     sync.WaitGroup

	mutex     sync.Mutex
	open      map[net.Conn]bool // all connections; nil once the server is closed
	strangers []net.Conn        // those that did not say yet who they are, the oldest first
	jobs      map[string]*run
}

// run is one run of a job.
type run struct {
	told     ToJob // tuning and stop, for replicas that connect later
	peers    map[int]*peer
	replicas int
}

type peer struct {
	conn net.Conn
	out  *outbox[ToJob]
	gone chan struct{}
}

// Listen serves a socket that only the user may open. It takes the place of one that nobody serves any more. The
// folder must exist, and be nobody else's to write to.
func Listen(path string) (*Server, error) {
	l, err := unixsocket.Listen(path)
	if err != nil {
		return nil, err
	}
	s := &Server{
		path: path, listener: unixsocket.Guard(l, nil), events: make(chan Event, 256), closing: make(chan struct{}),
		open: make(map[net.Conn]bool), jobs: make(map[string]*run),
	}
	s.work.Go(s.accept)
	return s, nil
}

// Events tells what the jobs say, in order for each replica, until the server is closed. A job whose events nobody
// takes is not read from.
func (s *Server) Events() <-chan Event { return s.events }

// Expect begins a run of a job: its replicas may connect, those of the run before are cut off, and what that was told
// is forgotten. A server refuses jobs that it does not expect.
func (s *Server) Expect(job string) { s.ExpectReplicas(job, MaxReplicas) }

// ExpectReplicas is Expect for a run of so many replicas: others are refused, so that a job takes no more connections than it
// has replicas.
func (s *Server) ExpectReplicas(job string, replicas int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.forget(job)
	s.jobs[job] = &run{peers: make(map[int]*peer), replicas: replicas}
}

// Forget ends a run of a job.
func (s *Server) Forget(job string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.forget(job)
}

func (s *Server) forget(job string) {
	if r := s.jobs[job]; r != nil {
		for _, p := range r.peers {
			hangUp(p.conn)
		}
		delete(s.jobs, job)
	}
}

// Send tells all replicas of an expected job, and with a tuning or a stop those that connect later. It reports to how
// many of them it goes now.
func (s *Server) Send(job string, m ToJob) (int, error) {
	if err := m.Validate(); err != nil {
		return 0, fmt.Errorf("tell job %q: %w", job, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.jobs[job]
	if r == nil {
		return 0, fmt.Errorf("tell job %q: it is not expected", job)
	}
	r.told.add(ToJob{Tuning: m.Tuning, Stop: m.Stop})
	for _, p := range r.peers {
		p.out.put(func(l *ToJob) { l.add(m) })
	}
	return len(r.peers), nil
}

// Close ends all connections and removes the socket.
func (s *Server) Close() error {
	s.mutex.Lock()
	if s.open == nil {
		s.mutex.Unlock()
		return nil
	}
	close(s.closing)
	for conn := range s.open {
		hangUp(conn)
	}
	s.open = nil
	s.mutex.Unlock()
	err := errors.Join(os.Remove(s.path), s.listener.Close())
	s.work.Wait()
	close(s.events)
	return err
}

// tell reports whether the event was taken before the server was closed.
func (s *Server) tell(e Event) bool {
	select {
	case s.events <- e:
		return true
	case <-s.closing:
		return false
	}
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.closing:
				return
			case <-time.After(20 * time.Millisecond): // out of file descriptors, most likely
				continue
			}
		}
		s.mutex.Lock()
		if s.open == nil {
			s.mutex.Unlock()
			hangUp(conn)
			return
		}
		if len(s.open) >= mostConnections() {
			s.mutex.Unlock()
			hangUp(conn) // the scheduler needs descriptors for more than jobs that talk
			continue
		}
		s.open[conn] = true
		if s.strangers = append(s.strangers, conn); len(s.strangers) > mostStrangers {
			hangUp(s.strangers[0])
			s.strangers = s.strangers[1:]
		}
		s.work.Go(func() { s.serve(conn) })
		s.mutex.Unlock()
	}
}

// serve reads from one connection until it ends.
func (s *Server) serve(conn net.Conn) {
	defer func() {
		hangUp(conn)
		s.mutex.Lock()
		delete(s.open, conn)
		s.isKnown(conn)
		s.mutex.Unlock()
	}()
	lines := newReader[FromJob](conn)
	limit := time.AfterFunc(helloLimit, func() { hangUp(conn) })
	first, err := lines.next()
	if !limit.Stop() && err != nil {
		err = fmt.Errorf("no hello within %v", helloLimit)
	}
	if err == nil && first.Hello == nil {
		err = errors.New("the first line has no hello")
	}
	var hello Hello
	var p *peer
	if err == nil {
		hello = *first.Hello
		p, err = s.welcome(hello, conn)
	}
	if err != nil {
		refuse(conn, err)
		if e := (Event{Job: hello.Job, Rank: hello.Rank, Gone: true, Err: spoken(err)}); e.Err != nil {
			s.tell(e)
		}
		return
	}
	for l := first; err == nil; l, err = lines.next() {
		if l.Hello != nil && *l.Hello != hello {
			err = fmt.Errorf("hello of job %q, rank %d, after that of job %q, rank %d", l.Hello.Job, l.Hello.Rank, hello.Job, hello.Rank)
			break
		}
		if !s.tell(Event{Job: hello.Job, Rank: hello.Rank, FromJob: l}) {
			err = net.ErrClosed
			break
		}
	}
	refuse(conn, err)
	if s.leave(hello, p) {
		s.tell(Event{Job: hello.Job, Rank: hello.Rank, Gone: true, Err: spoken(err)})
	}
}

func (s *Server) isKnown(conn net.Conn) {
	s.strangers = slices.DeleteFunc(s.strangers, func(other net.Conn) bool { return other == conn })
}

// welcome makes a connection that of its replica, in the place of any before.
func (s *Server) welcome(h Hello, conn net.Conn) (*peer, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.jobs[h.Job]
	if r == nil {
		return nil, fmt.Errorf("job %q is not expected", h.Job)
	}
	if s.open == nil {
		return nil, net.ErrClosed
	}
	if h.Rank >= r.replicas {
		return nil, fmt.Errorf("job %q has no rank %d, it runs on %d replicas", h.Job, h.Rank, r.replicas)
	}
	if before := r.peers[h.Rank]; before != nil {
		hangUp(before.conn)
	}
	s.isKnown(conn)
	p := &peer{conn, newOutbox[ToJob](), make(chan struct{})}
	r.peers[h.Rank] = p
	if r.told != (ToJob{}) {
		p.out.put(func(l *ToJob) { l.add(r.told) })
	}
	s.work.Go(p.write)
	return p, nil
}

// leave reports whether the connection was still that of its replica.
func (s *Server) leave(h Hello, p *peer) bool {
	close(p.gone)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.jobs[h.Job]
	if r == nil || r.peers[h.Rank] != p {
		return false
	}
	delete(r.peers, h.Rank)
	return true
}

// write tells a replica what there is to tell until its connection ends.
func (p *peer) write() {
	for {
		select {
		case <-p.gone:
			return
		case <-p.out.ready:
		}
		if l, full := p.out.take(); full && writeLine(p.conn, l) != nil {
			hangUp(p.conn)
			return
		}
	}
}

// refuse tells the other side what it did wrong, if it listens.
func refuse(conn net.Conn, err error) {
	if err = spoken(err); err == nil {
		return
	}
	limit := time.AfterFunc(refuseLimit, func() { hangUp(conn) })
	defer limit.Stop()
	_ = writeLine(conn, ToJob{Refused: &Refused{Message: err.Error()}}) // it may be gone
}

// spoken is an error that is about what was said, and nil for one that the end of a connection brings.
func spoken(err error) error {
	var network *net.OpError
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network) {
		return nil
	}
	return err
}
