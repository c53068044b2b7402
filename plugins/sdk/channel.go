package sdk

import (
	"context"
	"os"
	"strconv"
	"syscall"

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
	syscall.CloseOnExec(descriptor)
	file := os.NewFile(uintptr(descriptor), "channel")
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeSocket == 0 {
		return nil
	}
	// The descriptor blocks, and stays so: a read that waits in the system ends sooner than one that waits for Go's poller.
	return wire.NewChannel(file)
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
