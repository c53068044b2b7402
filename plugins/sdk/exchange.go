package sdk

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

// call answers one encoded request of a stage service.
type call func(ctx context.Context, request []byte) (answer any, err error)

// takeCalls takes those of a service over Exchange.
func (s *server) takeCalls(service *grpc.ServiceDesc, implementation any) {
	for _, m := range service.Methods {
		s.calls["/"+service.ServiceName+"/"+m.MethodName] = func(ctx context.Context, request []byte) (any, error) {
			decode := func(into any) error { return proto.Unmarshal(request, into.(proto.Message)) }
			return m.Handler(implementation, ctx, decode, s.recoverPanics)
		}
	}
}

// Exchange takes calls over one stream, until the host ends it or a call fails.
func (s *server) Exchange(stream grpc.BidiStreamingServer[stagev1.ExchangeRequest, stagev1.ExchangeResponse]) error {
	var request stagev1.ExchangeRequest
	var response stagev1.ExchangeResponse
	for {
		if err := stream.RecvMsg(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer, err := s.call(stream.Context(), request.GetMethod(), request.GetMessage())
		if err != nil {
			return err
		}
		if response.Message, err = (proto.MarshalOptions{}).MarshalAppend(response.Message[:0], answer.(proto.Message)); err != nil {
			return status.Errorf(codes.Internal, "encode the answer: %v", err)
		}
		if err := stream.SendMsg(&response); err != nil {
			return err
		}
	}
}

func (s *server) call(ctx context.Context, method string, request []byte) (any, error) {
	answer, known := s.calls[method]
	if !known {
		return nil, status.Errorf(codes.Unimplemented, "there is no call %q", method)
	}
	return answer(ctx, request)
}
