package agent

import (
	"context"
	"errors"
	"fmt"
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

// How many connections may be open of which it is not known yet who they are: of the machine that has most of them the oldest
// makes room for another, so that a job that opens them without end takes the scheduler's descriptors from nobody. On other
// machines are many jobs, all of which come at once when a scheduler takes over.
const (
	maxUnknownClients       = 128
	maxRemoteUnknownClients = 2048
)

// mostOfMember bounds the connections of a member: it has fewer replicas, and who says many ranks is up to no good.
const mostOfMember = 256

// mostConnections is half of the descriptors that this process may have.
func mostConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 2*mostEver {
		return mostEver
	}
	return int(limit.Cur / 2)
}

const mostEver = 1 << 20

// Identity is who a connection speaks for.
type Identity struct {
	Job    string // name by which the server expects it
	Member string // of the job; empty where jobs have none
}

// Admit finds out who says a hello, by its token. What it returns as an error is sent to the other side, whose connection is
// ended; it tries again later. It is called for many connections at a time, and returns when the context ends, which is ten
// seconds after the connection was opened at the latest.
type Admit func(ctx context.Context, h Hello) (Identity, error)

// Event is what a server reports about a replica: what it said, or that it went.
type Event struct {
	Job    string // empty for a connection of which it never was known who it is
	Member string // empty where jobs have none
	Rank   int    // as in the hello: that of the environment, whatever the world is by now
	FromJob
	Gone bool  // the connection ended; not reported for one that was replaced by another of its rank, or forgotten
	Err  error // why the server ended it; nil when the replica did
}

// Server is the scheduler's side. Its methods may be called from any goroutine and do not wait for a job.
type Server struct {
	path       string // of a unix socket
	listener   net.Listener
	admit      Admit
	hello      time.Duration // in which a connection has to be admitted
	maxUnknown int           // how many unknown clients may be connected at once
	events     chan Event
	closing    context.Context
	close      context.CancelFunc
	work       sync.WaitGroup

	mutex   sync.Mutex
	open    map[net.Conn]bool // all connections; nil once the server is closed
	unknown []unknownClient   // not admitted yet, the oldest first
	jobs    map[string]*run
}

// run is one run of a job.
type run struct {
	told     ToJob            // tuning, world and stop, for replicas that connect later
	members  map[string]ToJob // likewise for those of a member, over what all are told
	peers    map[replica]*peer
	replicas int
}

// replica is who a connection belongs to. Two members may say the same rank for a moment, while the world changes.
type replica struct {
	member string
	rank   int
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
	s := newServer(unixsocket.Guard(l, nil), trust)
	s.path, s.maxUnknown = path, maxUnknownClients
	s.work.Go(s.accept)
	return s, nil
}

// Serve serves a listener, such as one of TLS, to jobs on other machines, and closes it in the end. Admit says who they are:
// what a hello says of itself is not believed.
func Serve(l net.Listener, admit Admit) *Server {
	s := newServer(l, admit)
	s.work.Go(s.accept)
	return s
}

func newServer(l net.Listener, admit Admit) *Server {
	closing, end := context.WithCancel(context.Background())
	return &Server{
		listener: l, admit: admit, hello: helloLimit, maxUnknown: maxRemoteUnknownClients, events: make(chan Event, 256),
		closing: closing, close: end, open: make(map[net.Conn]bool), jobs: make(map[string]*run),
	}
}

// trust believes what a hello says: who can open the socket is the user.
func trust(_ context.Context, h Hello) (Identity, error) { return Identity{Job: h.Job}, nil }

// Events returns what the jobs say, in order for each replica, until the server is closed. A job whose events nobody
// takes is not read from.
func (s *Server) Events() <-chan Event { return s.events }

// Expect begins a run of a job: its replicas may connect, those of the run before are cut off, and what that was sent
// is forgotten. A server refuses jobs that it does not expect.
func (s *Server) Expect(job string) { s.ExpectReplicas(job, MaxReplicas) }

// ExpectReplicas is Expect for a run of so many replicas: others are refused, so that a job takes no more connections than it
// has replicas. For a run whose world changes it is the most that there may ever be.
func (s *Server) ExpectReplicas(job string, replicas int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.forget(job)
	s.jobs[job] = &run{members: make(map[string]ToJob), peers: make(map[replica]*peer), replicas: replicas}
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

// Send sends to all replicas of an expected job, and with a tuning, a world or a stop those that connect later. It reports to how
// many of them it goes now.
func (s *Server) Send(job string, m ToJob) (int, error) {
	return s.send(job, m, func(r *run) {
		r.told.add(m.lasting())
		for member, told := range r.members {
			told.add(m.lasting())
			r.members[member] = told
		}
	}, func(replica) bool { return true })
}

// SendTo is Send for the replicas of one member.
func (s *Server) SendTo(job, member string, m ToJob) (int, error) {
	return s.send(job, m, func(r *run) {
		told := r.members[member]
		told.add(m.lasting())
		r.members[member] = told
	}, func(at replica) bool { return at.member == member })
}

// lasting is what those are told, too, that connect later.
func (m *ToJob) lasting() ToJob { return ToJob{Tuning: m.Tuning, World: m.World, Stop: m.Stop} }

func (s *Server) send(job string, m ToJob, remember func(*run), to func(replica) bool) (count int, err error) {
	if err := m.Validate(); err != nil {
		return 0, fmt.Errorf("send to job %q: %w", job, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.jobs[job]
	if r == nil {
		return 0, fmt.Errorf("send to job %q: it is not expected", job)
	}
	remember(r)
	for at, p := range r.peers {
		if to(at) {
			p.out.put(func(l *ToJob) { l.add(m) })
			count++
		}
	}
	return count, nil
}

// Close ends all connections, and removes the socket.
func (s *Server) Close() error {
	s.mutex.Lock()
	if s.open == nil {
		s.mutex.Unlock()
		return nil
	}
	s.close()
	for conn := range s.open {
		hangUp(conn)
	}
	s.open = nil
	s.mutex.Unlock()
	var err error
	if s.path != "" {
		err = os.Remove(s.path)
	}
	err = errors.Join(err, s.listener.Close())
	s.work.Wait()
	close(s.events)
	return err
}

// deliver reports whether the event was taken before the server was closed.
func (s *Server) deliver(e Event) bool {
	select {
	case s.events <- e:
		return true
	case <-s.closing.Done():
		return false
	}
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.closing.Done():
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
		s.unknown = append(s.unknown, unknownClient{conn, machine(conn)})
		if len(s.unknown) > s.maxUnknown {
			i := foremost(s.unknown)
			hangUp(s.unknown[i].conn)
			s.unknown = slices.Delete(s.unknown, i, i+1)
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
	first, who, err := s.greet(conn, lines)
	var hello Hello
	if err == nil {
		hello = *first.Hello
	}
	at := replica{who.Member, hello.Rank}
	about := func(l FromJob) Event {
		return Event{Job: who.Job, Member: who.Member, Rank: hello.Rank, FromJob: l}
	}
	gone := func(err error) Event {
		e := about(FromJob{})
		e.Gone, e.Err = true, spoken(err)
		return e
	}
	var p *peer
	if err == nil {
		p, err = s.welcome(who.Job, at, conn)
	}
	if err != nil {
		refuse(conn, err)
		if e := gone(err); e.Err != nil {
			s.deliver(e)
		}
		linger(conn, err)
		return
	}
	for l := first; err == nil; l, err = lines.next() {
		if l.Hello != nil {
			l.Hello.Token = "" // it is nobody's to pass on
			if *l.Hello != hello {
				err = fmt.Errorf("hello of job %q, rank %d, after that of job %q, rank %d", l.Hello.Job, l.Hello.Rank, hello.Job, hello.Rank)
				break
			}
		}
		if !s.deliver(about(l)) {
			err = net.ErrClosed
			break
		}
	}
	refuse(conn, err)
	if s.leave(who.Job, at, p) {
		s.deliver(gone(err))
	}
	linger(conn, err)
}

// greet returns the first line of a connection, without its token, and who it speaks for.
func (s *Server) greet(conn net.Conn, lines reader[FromJob, *FromJob]) (first FromJob, who Identity, err error) {
	ctx, cancel := context.WithTimeout(s.closing, s.hello)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { hangUp(conn) })
	if err = shakeHands(ctx, conn); err == nil {
		first, err = lines.next()
	}
	stop()
	if err != nil && s.closing.Err() != nil {
		return first, who, net.ErrClosed
	} else if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no hello within %v", s.hello)
	}
	if err == nil && first.Hello == nil {
		err = errors.New("the first line has no hello")
	}
	if err != nil {
		return first, who, err
	}
	hello := *first.Hello
	first.Hello.Token = ""
	if who, err = s.admit(ctx, hello); err == nil {
		return first, who, nil
	}
	if s.closing.Err() != nil {
		err = net.ErrClosed
	} else {
		err = notAdmitted(hello, err)
	}
	return first, Identity{}, err
}

func (s *Server) isKnown(conn net.Conn) {
	s.unknown = slices.DeleteFunc(s.unknown, func(other unknownClient) bool { return other.conn == conn })
}

// welcome makes a connection that of its replica, in the place of any before.
func (s *Server) welcome(job string, at replica, conn net.Conn) (*peer, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.jobs[job]
	if r == nil {
		return nil, fmt.Errorf("job %q is not expected", job)
	}
	if s.open == nil {
		return nil, net.ErrClosed
	}
	if at.rank >= r.replicas {
		return nil, fmt.Errorf("job %q has no rank %d, it runs on %d replicas", job, at.rank, r.replicas)
	}
	if before := r.peers[at]; before != nil {
		hangUp(before.conn)
	} else if at.member != "" && r.of(at.member) >= mostOfMember {
		return nil, fmt.Errorf("member %q of job %q has %d connections already", at.member, job, mostOfMember)
	}
	s.isKnown(conn)
	p := &peer{conn, newOutbox[ToJob](), make(chan struct{})}
	r.peers[at] = p
	told := r.told
	told.add(r.members[at.member])
	if told != (ToJob{}) {
		p.out.put(func(l *ToJob) { l.add(told) })
	}
	s.work.Go(p.write)
	return p, nil
}

// of counts the connections of a member.
func (r *run) of(member string) (count int) {
	for at := range r.peers {
		if at.member == member {
			count++
		}
	}
	return count
}

// leave reports whether the connection was still that of its replica.
func (s *Server) leave(job string, at replica, p *peer) bool {
	close(p.gone)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r := s.jobs[job]
	if r == nil || r.peers[at] != p {
		return false
	}
	delete(r.peers, at)
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
