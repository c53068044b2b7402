package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/plugins/wire"
)

// channel makes calls over the socket that a plugin inherits, one at a time. It needs no encryption: nobody else can open
// it.
type channel struct {
	*wire.Channel
	socket  *socket  // that it goes over
	theirs  *os.File // closed once the plugin has it
	call    uint64   // number of the last one
	answer  wire.Frame
	failure error // why it cannot be used any more
}

// newChannel returns a channel whose other end is theirs.
func newChannel() (*channel, error) {
	syscall.ForkLock.RLock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "channel of a plugin")
	ours, err := newSocket(ends[0])
	if err != nil {
		_ = theirs.Close()
		return nil, err
	}
	return &channel{Channel: wire.NewChannel(ours), socket: ours, theirs: theirs}, nil
}

// started gives up the plugin's end, so that the channel ends with the plugin.
func (c *channel) started() {
	_ = c.theirs.Close() // more than once does nothing
}

// Close ends the channel.
func (c *channel) Close() error {
	c.started()
	return c.Channel.Close()
}

// Invoke makes a unary call.
func (c *channel) Invoke(ctx context.Context, method string, request, answer any, _ ...grpc.CallOption) (err error) {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if c.failure != nil {
		return c.failure
	}
	c.call++
	c.socket.call = ctx
	err = c.exchange(method, request.(proto.Message))
	c.socket.call = nil
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		c.failure = status.Error(codes.Unavailable, "the plugin ended the channel")
		return c.failure
	default:
		return err
	}
	if code := codes.Code(c.answer.Code); code != codes.OK {
		return status.Error(code, c.answer.Error)
	}
	return proto.Unmarshal(c.answer.Message, answer.(proto.Message))
}

// exchange sends the request and waits for its answer, past those to calls that were given up.
func (c *channel) exchange(method string, request proto.Message) error {
	if err := c.SendRequest(method, c.call, request); err != nil {
		if _, unsent := status.FromError(err); !unsent {
			c.failure = status.Errorf(codes.Unavailable, "a request was sent in part: %v", err)
		}
		return err
	}
	for {
		if err := c.ReceiveAnswer(&c.answer); err != nil {
			return err
		}
		switch {
		case c.answer.Call == c.call:
			return nil
		case c.answer.Call > c.call:
			return fmt.Errorf("the plugin answers call %d, after %d were made", c.answer.Call, c.call)
		}
	}
}

// NewStream is for unary calls only.
func (c *channel) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "a channel carries no streams")
}
