package sdk

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/plugins/wire"
)

// quiet keeps go-plugin's own chatter out of the policy's log.
var quiet = hclog.NewNullLogger()

// guardStdout sends what is printed from now on to stderr, and returns the real stdout: the handshake is written there,
// and a stray line before it would make the plugin unreadable.
func guardStdout() *os.File {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out
}

// pollHost is how often a plugin looks for its host.
const pollHost = 500 * time.Millisecond

// endWithHost ends the process once the one that started it is gone, however it went, and removes the folder that the
// host made for the socket and can no longer remove itself.
func endWithHost() {
	host := os.Getppid()
	for range time.Tick(pollHost) {
		if os.Getppid() == host {
			continue
		}
		if folder := os.Getenv(plugin.EnvUnixSocketDir); strings.HasPrefix(filepath.Base(folder), wire.SocketFolder) {
			_ = os.RemoveAll(folder) // in the folder for temporary files: it is forgotten at worst
		}
		os.Exit(1)
	}
}

// newGRPCServer is called before go-plugin takes stdout and stderr over. From the first call on both are the real stderr
// again: what a policy prints is then written at once, even by a process that is about to die.
func (s *server) newGRPCServer(options []grpc.ServerOption) *grpc.Server {
	stderr := os.Stderr
	takeBack := sync.OnceFunc(func() { os.Stdout, os.Stderr = stderr, stderr })
	guard := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		takeBack()
		return s.recoverPanics(ctx, request, info, handle)
	}
	return grpc.NewServer(slices.Concat(options, wire.ServerOptions(), []grpc.ServerOption{grpc.UnaryInterceptor(guard)})...)
}

// recoverPanics turns a panic of the policy into an error of the call; the process lives on.
func (s *server) recoverPanics(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("the policy panicked", "method", info.FullMethod, "panic", p, "stack", string(debug.Stack()))
			answer, err = nil, status.Errorf(codes.Internal, "the policy panicked: %v", p)
		}
	}()
	return handle(ctx, request)
}

// newLogHandler writes structured logs as the host reads them from a plugin's stderr.
func newLogHandler(w io.Writer) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 {
				return a
			}
			switch a.Key {
			case slog.TimeKey:
				return slog.String("@timestamp", a.Value.Time().Format("2006-01-02T15:04:05.000000Z07:00"))
			case slog.LevelKey:
				return slog.String("@level", hclogLevel(a.Value.Any().(slog.Level)))
			case slog.MessageKey:
				a.Key = "@message"
			}
			return a
		},
	})
}

func hclogLevel(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warn"
	default:
		return "error"
	}
}
