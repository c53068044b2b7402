package host

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Calls returns the connection to call a configured component by: one stream for all calls where the plugin serves that, which costs
// less for each of them, and otherwise the connection itself.
func Calls(ctx context.Context, conn grpc.ClientConnInterface, configured *stagev1.ConfigureResponse) (grpc.ClientConnInterface, error) {
	if !configured.GetExchange() {
		return conn, nil
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stream, err := stagev1.NewBaseServiceClient(conn).Exchange(life)
	if err != nil {
		end()
		return nil, err
	}
	return &exchange{stream: stream, end: end}, nil
}

// calls is what to call the configured component of a process by: the channel where the plugin serves it.
func (p *Process) calls(ctx context.Context, configured *stagev1.ConfigureResponse) (grpc.ClientConnInterface, error) {
	if configured.GetChannel() {
		return p.channel, nil
	}
	return Calls(ctx, p.Conn, configured)
}

// exchange makes calls over one stream, one at a time. It ends when it is closed, with its connection, or with the first
// call that fails.
type exchange struct {
	stream  grpc.BidiStreamingClient[stagev1.ExchangeRequest, stagev1.ExchangeResponse]
	end     context.CancelFunc
	request stagev1.ExchangeRequest
	answer  stagev1.ExchangeResponse
}

// Invoke makes a unary call.
func (e *exchange) Invoke(ctx context.Context, method string, request, answer any, _ ...grpc.CallOption) (err error) {
	stop := context.AfterFunc(ctx, e.end)
	defer stop()
	e.request.Method = method
	if e.request.Message, err = (proto.MarshalOptions{}).MarshalAppend(e.request.Message[:0], request.(proto.Message)); err != nil {
		return err
	}
	if err := e.stream.SendMsg(&e.request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := e.stream.RecvMsg(&e.answer); err != nil { // also says why the message could not be sent
		switch {
		case ctx.Err() != nil:
			return status.FromContextError(ctx.Err()).Err()
		case errors.Is(err, io.EOF):
			return status.Error(codes.Unavailable, "the plugin ended the exchange")
		}
		return err
	}
	return proto.Unmarshal(e.answer.GetMessage(), answer.(proto.Message))
}

// Close ends the exchange, and leaves the connection open.
func (e *exchange) Close() error {
	e.end()
	return nil
}

// NewStream is for unary calls only.
func (e *exchange) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "an exchange carries no streams")
}
