package sdk

import (
	"context"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
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
	var request stagev1.ExchangeRequest
	var response stagev1.ExchangeResponse
	for c.Receive(&request) == nil {
		s.respond(&request, &response)
		err := c.Send(&response)
		if status.Code(err) == codes.ResourceExhausted {
			fail(&response, err)
			err = c.Send(&response)
		}
		if err != nil {
			break
		}
	}
	_ = c.Close() // the host finds out
}

// respond makes the answer to a request.
func (s *server) respond(request *stagev1.ExchangeRequest, response *stagev1.ExchangeResponse) {
	response.Call, response.Code, response.Error = request.GetCall(), 0, ""
	answer, err := s.call(context.Background(), request)
	if err == nil {
		response.Message, err = proto.MarshalOptions{}.MarshalAppend(response.Message[:0], answer.(proto.Message))
	}
	if err != nil {
		fail(response, err)
	}
}

func fail(response *stagev1.ExchangeResponse, err error) {
	s := status.Convert(err)
	response.Message, response.Code, response.Error = nil, uint32(s.Code()), s.Message()
}
