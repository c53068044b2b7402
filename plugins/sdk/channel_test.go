package sdk

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// dialled serves a policy over a channel, and returns the host's end. The server ends with the test.
func dialled(t *testing.T, s *server) *wire.Channel {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serveChannel(wire.NewChannel(theirs))
	}()
	t.Cleanup(func() { _ = ours.Close(); <-served })
	return wire.NewChannel(ours)
}

// wordy allocates nothing and explains itself at length.
type wordy struct {
	echo
	bytes int
}

func (w *wordy) Admit(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	return []core.Verdict{{Job: waiting[0].ID, Code: core.Defer, Reason: core.PolicyDecision, Message: strings.Repeat("x", w.bytes)}}, nil
}

// TestTheChannelSurvivesFailedCalls makes calls that fail in every way between calls that succeed, over one channel.
func TestTheChannelSurvivesFailedCalls(t *testing.T) {
	policy := &wordy{}
	s := everywhere(t, policy)
	configure(t, s, stagev1.Stage_STAGE_ADMISSION)
	c := dialled(t, s)
	full, _ := theWorld()
	admit := &stagev1.AdmitRequest{View: full, Edit: one, Waiting: []int32{0}}
	const method = stagev1.AdmissionService_Admit_FullMethodName
	for i, tc := range []struct {
		method  string
		request proto.Message
		bytes   int // of the answer's message
		code    codes.Code
		message string
	}{
		{method: method, request: admit, bytes: 10},
		{method: "/quartet.stage.v1.BaseService/Sing", request: admit, code: codes.Unimplemented, message: `there is no call "/quartet.stage.v1.BaseService/Sing"`},
		{method: method, request: &stagev1.AdmitRequest{View: full, Edit: one}, code: codes.InvalidArgument, message: "an edit does not fit the list that it is for"},
		{method: method, request: admit, bytes: 20},
		{method: method, request: admit, bytes: wire.MaxMessage, code: codes.ResourceExhausted, message: "trying to send message larger than max"},
		{method: method, request: admit, bytes: 30},
	} {
		policy.bytes = tc.bytes
		call := uint64(i + 1)
		if err := c.SendRequest(tc.method, call, tc.request); err != nil {
			t.Fatalf("call %d: %v", call, err)
		}
		var got wire.Frame
		if err := c.ReceiveAnswer(&got); err != nil || got.Call != call {
			t.Fatalf("call %d: answer to %d, error %v", call, got.Call, err)
		}
		if codes.Code(got.Code) != tc.code || !strings.Contains(got.Error, tc.message) {
			t.Errorf("call %d: code %v, message %q", call, codes.Code(got.Code), got.Error)
		}
		if tc.code != codes.OK {
			continue
		}
		var answer stagev1.AdmitResponse
		if err := proto.Unmarshal(got.Message, &answer); err != nil || len(answer.GetVerdicts()) != 1 || len(answer.GetVerdicts()[0].GetMessage()) != tc.bytes {
			t.Errorf("call %d: %v, error %v", call, &answer, err)
		}
	}
}

// TestTheChannelEndsWithItsHost closes the host's end before a request, and before an answer: the server stops, and closes its end.
func TestTheChannelEndsWithItsHost(t *testing.T) {
	for name, before := range map[string]func(ours net.Conn){
		"before a request": func(ours net.Conn) { _ = ours.Close() },
		"in a request":     func(ours net.Conn) { _, _ = ours.Write([]byte{0, 0, 0, 9, 1}); _ = ours.Close() },
		"before an answer": func(ours net.Conn) {
			_ = wire.NewChannel(ours).SendRequest("/no/such", 1, &stagev1.HealthRequest{})
			_ = ours.Close()
		},
		"a frame that is none": func(ours net.Conn) { _, _ = ours.Write([]byte{0, 0, 0, 1, 0x0f}) },
		"a frame beyond the limit": func(ours net.Conn) {
			_, _ = ours.Write([]byte{0x7f, 0, 0, 0})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := everywhere(t, echo{})
			configure(t, s, stagev1.Stage_STAGE_ADMISSION)
			ours, theirs := net.Pipe()
			defer ours.Close()
			served := make(chan struct{})
			go func() {
				defer close(served)
				s.serveChannel(wire.NewChannel(theirs))
			}()
			before(ours)
			<-served
			if _, err := theirs.Write([]byte{0}); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("its end is still open: %v", err)
			}
		})
	}
}

// TestOnlyAnInheritedSocketIsAChannel names other descriptors in the environment. The variable is gone afterwards in any case, so that
// no child of the policy takes the descriptor for its own.
func TestOnlyAnInheritedSocketIsAChannel(t *testing.T) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	host := os.NewFile(uintptr(ends[0]), "host")
	defer host.Close()
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, tc := range map[string]struct {
		value string
		want  bool
	}{
		"nothing": {"", false}, "no number": {"three", false}, "stderr": {"2", false}, "stdin": {"0", false}, "closed": {"1000000", false},
		"a socket": {strconv.Itoa(ends[1]), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(wire.EnvChannel, tc.value)
			channel := inheritChannel()
			if (channel != nil) != tc.want {
				t.Fatalf("channel %v, want one: %v", channel, tc.want)
			}
			if value, set := os.LookupEnv(wire.EnvChannel); set {
				t.Errorf("%s is still %q", wire.EnvChannel, value)
			}
			if !tc.want {
				return
			}
			defer channel.Close()
			flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(ends[1]), syscall.F_GETFD, 0)
			if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
				t.Errorf("what the policy starts inherits the channel: flags %d, %v", flags, errno)
			}
			s := everywhere(t, echo{})
			go s.serveChannel(channel)
			calls := wire.NewChannel(host)
			if err := calls.SendRequest("/no/such", 1, &stagev1.HealthRequest{}); err != nil {
				t.Fatal(err)
			}
			var got wire.Frame
			if err := calls.ReceiveAnswer(&got); err != nil || codes.Code(got.Code) != codes.Unimplemented {
				t.Errorf("code %v, error %v", codes.Code(got.Code), err)
			}
		})
	}
	t.Run("a file", func(t *testing.T) {
		t.Setenv(wire.EnvChannel, strconv.Itoa(int(file.Fd())))
		if channel := inheritChannel(); channel != nil {
			t.Error("a file is taken for a channel")
		}
	})
}

// stream is the host's end of an exchange: it sends requests, takes answers in, and fails as it is told.
type stream struct {
	requests []*stagev1.ExchangeRequest
	answers  [][]byte
	sendErr  error
	end      error // of receiving; io.EOF from a host that is done
}

func (s *stream) Context() context.Context { return context.Background() }

func (s *stream) RecvMsg(m any) error {
	if len(s.requests) == 0 {
		return s.end
	}
	proto.Merge(resetOf(m), s.requests[0])
	s.requests = s.requests[1:]
	return nil
}

func resetOf(m any) proto.Message {
	proto.Reset(m.(proto.Message))
	return m.(proto.Message)
}

func (s *stream) SendMsg(m any) error {
	s.answers = append(s.answers, append([]byte(nil), m.(*stagev1.ExchangeResponse).GetMessage()...))
	return s.sendErr
}

// exchangeServer is a stream as the server of an exchange sees it; of the rest nothing is called.
type exchangeServer struct{ *stream }

func (exchangeServer) Recv() (*stagev1.ExchangeRequest, error) { return nil, errors.ErrUnsupported }
func (exchangeServer) Send(*stagev1.ExchangeResponse) error    { return errors.ErrUnsupported }
func (exchangeServer) SendHeader(metadata.MD) error            { return errors.ErrUnsupported }
func (exchangeServer) SetHeader(metadata.MD) error             { return errors.ErrUnsupported }
func (exchangeServer) SetTrailer(metadata.MD)                  {}

func TestAnExchangeEndsWithItsHostOrAFailedCall(t *testing.T) {
	full, change := theWorld()
	request := func(u *stagev1.ViewUpdate) *stagev1.ExchangeRequest {
		message, err := proto.Marshal(&stagev1.AdmitRequest{View: u, Edit: one, Waiting: []int32{0}})
		if err != nil {
			t.Fatal(err)
		}
		return &stagev1.ExchangeRequest{Method: stagev1.AdmissionService_Admit_FullMethodName, Message: message}
	}
	broken := &stagev1.ExchangeRequest{Method: stagev1.AdmissionService_Admit_FullMethodName, Message: []byte{0xff}}
	gone := errors.New("the connection is gone")
	for name, tc := range map[string]struct {
		stream  stream
		answers int
		code    codes.Code
	}{
		"the host is done":    {stream{requests: []*stagev1.ExchangeRequest{request(full), request(change)}, end: io.EOF}, 2, codes.OK},
		"the host is gone":    {stream{requests: []*stagev1.ExchangeRequest{request(full)}, end: gone}, 1, codes.Unknown},
		"an answer is lost":   {stream{requests: []*stagev1.ExchangeRequest{request(full), request(change)}, sendErr: gone, end: io.EOF}, 1, codes.Unknown},
		"a call is unknown":   {stream{requests: []*stagev1.ExchangeRequest{{Method: "/no/such"}, request(full)}, end: io.EOF}, 0, codes.Unimplemented},
		"a request is broken": {stream{requests: []*stagev1.ExchangeRequest{broken, request(full)}, end: io.EOF}, 0, codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := everywhere(t, echo{})
			configure(t, s, stagev1.Stage_STAGE_ADMISSION)
			err := s.Exchange(exchangeServer{&tc.stream})
			if len(tc.stream.answers) != tc.answers || status.Code(err) != tc.code {
				t.Errorf("%d answers, error %v, want %d and %v", len(tc.stream.answers), err, tc.answers, tc.code)
			}
			for i, message := range tc.stream.answers {
				var answer stagev1.AdmitResponse
				if err := proto.Unmarshal(message, &answer); err != nil || len(answer.GetEdit().GetSteps()) != 3 || answer.GetResync() {
					t.Errorf("answer %d: %v, error %v", i, &answer, err)
				}
			}
		})
	}
}
