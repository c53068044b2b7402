package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

func TestAFailureIsWorded(t *testing.T) {
	words := func(text string) func() string { return func() string { return text } }
	for name, tc := range map[string]struct {
		cause   error
		on      OnFailure
		session *Session
		want    string
	}{
		"a wrong answer":      {errors.New("9 replicas"), Restart, nil, "plugin \"p\": 9 replicas; `quartet plugin test` shows what it answers wrongly"},
		"a broken rule":       {&core.InvariantError{Component: "allocation/p", Round: 3, Rule: "capacity"}, Restart, nil, ""},
		"too late":            {status.Error(codes.DeadlineExceeded, "x"), Restart, nil, `plugin "p": call timed out after 7s; raise plugin.call_timeout if the policy needs the time`},
		"too late, fail":      {status.Error(codes.DeadlineExceeded, "x"), Fail, nil, `plugin "p": call timed out after 7s; raise plugin.call_timeout if the policy needs the time; plugin.on_failure: restart or fallback lets a run survive this`},
		"too late, no config": {status.Error(codes.DeadlineExceeded, "x"), "", nil, `plugin "p": call timed out after 7s`},
		"a refusal":           {status.Error(codes.Internal, "no model"), Restart, nil, `plugin "p": no model`},
		"a refusal, fail":     {status.Error(codes.Internal, "no model"), Fail, nil, `plugin "p": no model; plugin.on_failure: restart or fallback lets a run survive this`},
		"too much":            {status.Error(codes.ResourceExhausted, "99 MiB"), Restart, nil, `plugin "p": a message exceeded the 64 MiB that one may have: 99 MiB; answer with less`},
		"gone, no session":    {status.Error(codes.Unavailable, "x"), Restart, nil, `plugin "p": the process died`},
		"gone, no process":    {status.Error(codes.Unavailable, "x"), Restart, &Session{}, `plugin "p": the process died`},
		"gone, no words":      {status.Error(codes.Unavailable, "x"), Restart, &Session{End: words("exit status 3")}, `plugin "p": the process died`},
		"gone, no end":        {status.Error(codes.Unavailable, "x"), Restart, &Session{FinalOutput: words("no licence")}, `plugin "p": the process died`},
		"gone":                {status.Error(codes.Unavailable, "x"), Restart, &Session{End: words("exit status 3"), FinalOutput: words("no licence")}, `plugin "p": the process died: exit status 3; its last output: "no licence"`},
		"gone, in silence":    {status.Error(codes.Unavailable, "x"), Restart, &Session{End: words("signal: killed"), FinalOutput: words("")}, `plugin "p": the process died: signal: killed`},
	} {
		t.Run(name, func(t *testing.T) {
			closed := 0
			w := worker{name: "p", options: Options{OnFailure: tc.on, CallTimeout: 7 * time.Second}, session: tc.session}
			if w.session != nil {
				w.session.Close = func() { closed++ }
			}
			got, want := w.fail(tc.cause), tc.want
			if want == "" {
				want = fmt.Sprintf("%s (answer of plugin \"p\"); `quartet plugin test` shows what it answers wrongly", tc.cause)
			}
			if got.Error() != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			if w.session != nil || tc.session != nil && closed != 1 {
				t.Errorf("the session is left, or was closed %d times", closed)
			}
		})
	}
}

func TestAFailureTellsOfRestarts(t *testing.T) {
	for name, tc := range map[string]struct {
		restarts int
		want     string
	}{
		"none": {0, `plugin "p": no`},
		"one":  {1, `plugin "p": no; given up after 1 restarts`},
	} {
		t.Run(name, func(t *testing.T) {
			f := &pluginFailure{Plugin: "p", Cause: errors.New("no"), Restarts: tc.restarts}
			if f.Error() != tc.want || !errors.Is(f, f.Cause) {
				t.Errorf("%s, want %s", f, tc.want)
			}
		})
	}
}

// stream is what an exchange goes over: it answers what it is told to.
type stream struct {
	grpc.BidiStreamingClient[stagev1.ExchangeRequest, stagev1.ExchangeResponse]
	send, receive error
	answer        []byte
	methods       []string
	sent          [][]byte
}

func (s *stream) SendMsg(m any) error {
	request := m.(*stagev1.ExchangeRequest)
	s.methods = append(s.methods, request.GetMethod())
	s.sent = append(s.sent, append([]byte(nil), request.GetMessage()...))
	return s.send
}

func (s *stream) RecvMsg(m any) error {
	m.(*stagev1.ExchangeResponse).Message = s.answer
	return s.receive
}

func TestAnExchange(t *testing.T) {
	answer, err := proto.Marshal(&stagev1.ScaleResponse{Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	broken := status.Error(codes.Internal, "broken")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		stream stream
		want   error
	}{
		"an answer":                         {nil, stream{answer: answer}, nil},
		"a failed call":                     {nil, stream{receive: broken}, broken},
		"the end":                           {nil, stream{receive: io.EOF}, status.Error(codes.Unavailable, "the plugin ended the exchange")},
		"the end before the question":       {nil, stream{send: io.EOF, receive: broken}, broken},
		"a question that cannot be sent":    {nil, stream{send: broken, answer: answer}, broken},
		"given up":                          {cancelled, stream{receive: io.EOF}, status.Error(codes.Canceled, "context canceled")},
		"given up, with a failure":          {cancelled, stream{receive: broken}, status.Error(codes.Canceled, "context canceled")},
		"given up, and answered in between": {cancelled, stream{answer: answer}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			ended := make(chan bool, 9)
			e := &exchange{stream: &tc.stream, end: func() { ended <- true }}
			for k := range 2 {
				got, err := stagev1.NewScalerServiceClient(e).Scale(ctx, &stagev1.ScaleRequest{Tunings: make([]*stagev1.Tuning, 2-k)})
				if status.Code(err) != status.Code(tc.want) || err != nil && err.Error() != tc.want.Error() || err == nil && got.GetNodes() != 3 {
					t.Errorf("%v, error %v; want %v", got, err, tc.want)
				}
			}
			const method = "/quartet.stage.v1.ScalerService/Scale"
			if diff := cmp.Diff([]string{method, method}, tc.stream.methods); diff != "" {
				t.Errorf("methods -want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]int{4, 2}, []int{len(tc.stream.sent[0]), len(tc.stream.sent[1])}); diff != "" {
				t.Errorf("lengths of requests -want +got:\n%s", diff)
			}
			if tc.ctx == nil && len(ended) > 0 {
				t.Error("it was ended")
			}
			if err := e.Close(); err != nil || !<-ended {
				t.Errorf("close: error %v", err)
			}
			if _, err := e.NewStream(t.Context(), nil, ""); status.Code(err) != codes.Unimplemented {
				t.Errorf("a stream: error %v", err)
			}
		})
	}
}

// opener opens exchanges, and notes the context of each.
type opener struct {
	grpc.ClientConnInterface
	fails  error
	opened []context.Context
}

func (o *opener) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	o.opened = append(o.opened, ctx)
	return nil, o.fails
}

// A component is called over an exchange where the plugin serves one, which outlives the call that opens it and ends when closed.
func TestCallsGoOverAnExchange(t *testing.T) {
	conn := &opener{}
	if got, err := Calls(t.Context(), conn, &stagev1.ConfigureResponse{}); err != nil || got != conn || len(conn.opened) > 0 {
		t.Errorf("%v, error %v: want the connection itself", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got, err := Calls(ctx, conn, &stagev1.ConfigureResponse{Exchange: true})
	if err != nil || len(conn.opened) != 1 {
		t.Fatalf("error %v, %d opened", err, len(conn.opened))
	}
	cancel()
	if conn.opened[0].Err() != nil {
		t.Error("it ended with the call that opened it")
	}
	if err := got.(io.Closer).Close(); err != nil || conn.opened[0].Err() == nil {
		t.Errorf("closed, error %v: it is still open", err)
	}
	conn.fails = errors.New("no")
	if _, err := Calls(t.Context(), conn, &stagev1.ConfigureResponse{Exchange: true}); !errors.Is(err, conn.fails) || conn.opened[1].Err() == nil {
		t.Errorf("error %v, want that of the stream, and nothing left of it", err)
	}
}
