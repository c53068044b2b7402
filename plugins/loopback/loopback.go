// Package loopback serves policies over the plugin protocol without a process: what a plugin would see and say, in
// memory. Tests use it to put a policy behind the wire.
package loopback

import (
	"context"
	"log/slog"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/sdk"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// bufferSize is that of the pipe, not a limit on messages.
const bufferSize = 1 << 20

// Dial returns what reaches the component of a factory through the wire.
func Dial(f sdk.Factory, c host.Component) host.Dial {
	return func(ctx context.Context) (*host.Session, error) {
		listener := bufconn.Listen(bufferSize)
		server := grpc.NewServer(wire.ServerOptions()...)
		if err := sdk.Register(server, slog.New(slog.DiscardHandler), f); err != nil {
			return nil, err
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(listener) // ends with Stop
		}()
		stop := func() {
			server.Stop()
			<-done
		}
		conn, err := grpc.NewClient("passthrough:///loopback", append(wire.DialOptions(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			stop()
			return nil, err
		}
		end := func() { _ = conn.Close(); stop() }
		configured, err := host.Configure(ctx, conn, c, false)
		if err != nil {
			end()
			return nil, err
		}
		calls, err := host.Calls(ctx, conn, configured)
		if err != nil {
			end()
			return nil, err
		}
		return &host.Session{Conn: calls, Close: end, Abilities: wire.AbilitiesFrom(configured)}, nil
	}
}
