package exposition

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// DefaultAddress is on the loopback: metrics expose names of policies and loads, and nobody has to authenticate.
const DefaultAddress = "127.0.0.1:9476"

// Limits on what a client can hold of the scheduler.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	closeTimeout   = 2 * time.Second
)

// Server serves a handler on an address.
type Server struct {
	http   http.Server
	addr   net.Addr
	served chan error
}

// Bind takes an address, HOST:PORT, on which nothing is served yet. Port 0 takes any free one.
func Bind(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w", err)
	}
	return listener, nil
}

// Listen binds an address and begins to serve on it.
func Listen(ctx context.Context, address string, h http.Handler) (*Server, error) {
	listener, err := Bind(ctx, address)
	if err != nil {
		return nil, err
	}
	return Serve(listener, h), nil
}

// Serve begins to serve on an address that was bound.
func Serve(listener net.Listener, h http.Handler) *Server {
	s := &Server{
		http: http.Server{
			Handler:           h,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
		},
		addr:   listener.Addr(),
		served: make(chan error, 1),
	}
	go func() { s.served <- s.http.Serve(listener) }()
	return s
}

// Addr is the address with the port it got.
func (s *Server) Addr() string { return s.addr.String() }

// Loopback reports whether only this machine can reach the server.
func (s *Server) Loopback() bool {
	tcp, ok := s.addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Close lets the requests under way end, but not for long. It is called once.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
