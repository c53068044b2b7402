package control

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/internal/unixsocket"
)

// MaxMessage bounds one message in bytes.
const MaxMessage = 64 << 20

// MaxJobFile bounds a job file, which shares its message with little else.
const MaxJobFile = MaxMessage - 1<<20

const (
	callLimit  = time.Minute     // for a call whose answer is one message
	greetLimit = 5 * time.Second // for a connection until it can carry calls
	closeLimit = 3 * time.Second // for the calls under way when the server is closed
)

// SocketName is the file of the socket in the live folder of a run.
const SocketName = "quartet.sock"

// Server takes orders for a backend, and returns what is on a board.
type Server struct {
	controlv1.UnimplementedControlServiceServer
	backend backend.Operated
	can     backend.Abilities // of the backend
	board   *Board
	soFar   SoFar // nil when nobody tells
	log     *slog.Logger
	closing context.Context
	close   context.CancelFunc
	work    sync.WaitGroup

	mutex   sync.Mutex
	servers []*grpc.Server // nil once closed
	sockets []string
	closed  bool
}

// NewServer returns a server that nobody can reach yet.
func NewServer(o backend.Operated, b *Board, log *slog.Logger) *Server {
	closing, end := context.WithCancel(context.Background())
	return &Server{backend: o, can: backend.AbilitiesOf(o), board: b, log: log, closing: closing, close: end}
}

// A File is one of a run.
type File struct {
	Name    string // relative to the folder of the run
	Content []byte // as it would be written
}

// SoFar makes the files of a run that are written when it ends as they would be if it ended now, and returns the moment in seconds.
type SoFar func() (files []File, nowSeconds float64, err error)

// SetSoFar says who makes the files of the run. It comes before anybody can reach the server.
func (s *Server) SetSoFar(f SoFar) { s.soFar = f }

// How long a caller waits for a scheduler that repeats the rounds of the one before it, and how often it looks.
const (
	catchUpLimit = 10 * time.Second
	catchUpEvery = 20 * time.Millisecond
)

// caughtUp waits until the board shows what is, and not what once was: while the backend repeats rounds, it is no answer.
func (s *Server) caughtUp(ctx context.Context) error {
	b := s.can.CatchingUp
	if b == nil || !b.Replaying() {
		return nil
	}
	limit, again := time.NewTimer(catchUpLimit), time.NewTicker(catchUpEvery)
	defer limit.Stop()
	defer again.Stop()
	for b.Replaying() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing.Done():
			return ErrCatchingUp
		case <-limit.C:
			return ErrCatchingUp
		case <-again.C:
		}
	}
	return nil
}

// ErrCatchingUp is the answer to questions that only the end of a replay can answer.
var ErrCatchingUp = status.Error(codes.Unavailable, "the scheduler was restarted and is catching up with the rounds before; ask again in a moment")

// ServeSocket answers on a unix socket that only this user and root may open. The folder must exist, and be nobody else's to
// write to.
func (s *Server) ServeSocket(path string) error {
	l, err := unixsocket.Listen(path)
	if err != nil {
		return err
	}
	refused := func(err error) { s.log.Warn("a caller was refused", "socket", path, "error", err) }
	s.mutex.Lock()
	s.sockets = append(s.sockets, path)
	s.mutex.Unlock()
	return s.serve(unixsocket.Guard(l, refused), insecure.NewCredentials())
}

// TLSListener is a TCP address on which nobody answers yet.
type TLSListener struct {
	net.Listener
	credentials credentials.TransportCredentials
}

// ListenTLS takes a TCP address for those who show a certificate of the authority. The system chooses a port that is given as 0.
func ListenTLS(ctx context.Context, address string, files TLSFiles) (*TLSListener, error) {
	config, err := files.server()
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &TLSListener{l, credentials.NewTLS(config)}, nil
}

// ServeTLS answers those who show a certificate of the authority. Whoever has one may do everything.
func (s *Server) ServeTLS(l *TLSListener) error { return s.serve(l.Listener, l.credentials) }

func (s *Server) serve(l net.Listener, c credentials.TransportCredentials) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return errors.Join(net.ErrClosed, l.Close())
	}
	server := grpc.NewServer(
		grpc.Creds(c), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage), grpc.ConnectionTimeout(greetLimit),
		grpc.UnaryInterceptor(s.guardCall), grpc.StreamInterceptor(s.guardStream),
	)
	controlv1.RegisterControlServiceServer(server, s)
	s.servers = append(s.servers, server)
	s.work.Go(func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.log.Error("orders are no longer taken", "address", l.Addr().String(), "error", err)
		}
	})
	return nil
}

// Close calls off what is under way, for a scheduler that ends carries out no order any more, and removes the sockets. It
// may be called more than once.
func (s *Server) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closed = true
	s.close()
	var errs []error
	for _, path := range s.sockets {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, server := range s.servers {
		limit := time.AfterFunc(closeLimit, server.Stop)
		server.GracefulStop()
		limit.Stop()
	}
	s.work.Wait()
	s.servers, s.sockets = nil, nil
	return errors.Join(errs...)
}

// guardCall bounds a call in time, and keeps what goes wrong in it from ending the scheduler.
func (s *Server) guardCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	defer s.recover(info.FullMethod, &err)
	answer, err = handle(ctx, request)
	return answer, s.toCaller(err)
}

// guardStream does the same for a stream, which may last.
func (s *Server) guardStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	defer s.recover(info.FullMethod, &err)
	return s.toCaller(handle(server, &boundStream{stream, ctx}))
}

func (s *Server) toCaller(err error) error {
	if errors.Is(err, context.Canceled) && s.closing.Err() != nil {
		return status.Error(codes.Unavailable, "it is ending")
	}
	return toStatus(err)
}

type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (b *boundStream) Context() context.Context { return b.ctx }

func (s *Server) recover(method string, err *error) {
	if p := recover(); p != nil {
		s.log.Error("a call panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "%s panicked", filepath.Base(method))
	}
}
