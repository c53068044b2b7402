package sdk

import (
	"context"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/plugins/wire"
)

// inheritChannel is the channel that the host handed on; nil for none. What the policy starts does not get it.
func inheritChannel() *wire.Channel {
	descriptor, err := strconv.Atoi(os.Getenv(wire.EnvChannel))
	_ = os.Unsetenv(wire.EnvChannel)
	if err != nil || descriptor < 3 {
		return nil
	}
	file := os.NewFile(uintptr(descriptor), "channel")
	if file == nil {
		return nil
	}
	defer func() { _ = file.Close() }() // the connection has a descriptor of its own
	conn, err := net.FileConn(file)
	if err != nil {
		return nil
	}
	return wire.NewChannel(conn)
}

// serveChannel takes calls over the channel until the host ends it.
func (s *server) serveChannel(c *wire.Channel) {
	var request wire.Frame
	for c.ReceiveRequest(&request) == nil {
		answer, err := s.call(context.Background(), request.Method, request.Message)
		if err == nil {
			err = c.SendAnswer(request.Call, answer.(proto.Message))
			if _, unsent := status.FromError(err); !unsent {
				break
			}
		}
		if err != nil && c.SendFailure(request.Call, err) != nil {
			break
		}
	}
	_ = c.Close() // the host finds out
}
