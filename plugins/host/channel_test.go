package host

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// pairOf returns a channel and the plugin's end of it.
func pairOf(t *testing.T) (*channel, *wire.Channel) {
	t.Helper()
	ours, err := newChannel()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(ours.theirs)
	if err != nil {
		t.Fatal(err)
	}
	ours.started()
	theirs := wire.NewChannel(conn)
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return ours, theirs
}

func ask(ctx context.Context, c *channel) (*stagev1.ScaleResponse, error) {
	return stagev1.NewScalerServiceClient(c).Scale(ctx, &stagev1.ScaleRequest{})
}

// TestALateAnswerIsDropped gives up a call, makes the next one, and then has both answered.
func TestALateAnswerIsDropped(t *testing.T) {
	ours, theirs := pairOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	received := make(chan error, 2)
	go func() {
		var request wire.Frame
		received <- theirs.ReceiveRequest(&request)
		cancel()
		received <- theirs.ReceiveRequest(&request)
		_ = theirs.SendAnswer(1, &stagev1.ScaleResponse{Nodes: 1})
		_ = theirs.SendAnswer(2, &stagev1.ScaleResponse{Nodes: 2})
	}()
	if _, err := ask(ctx, ours); status.Code(err) != codes.Canceled {
		t.Fatalf("error %v, want cancelled", err)
	}
	if answer, err := ask(t.Context(), ours); err != nil || answer.GetNodes() != 2 {
		t.Errorf("%v, error %v; want the answer to the second call", answer, err)
	}
	for range 2 {
		if err := <-received; err != nil {
			t.Error(err)
		}
	}
}

func TestAFailedCallLeavesTheChannelOpen(t *testing.T) {
	ours, theirs := pairOf(t)
	go func() {
		var request wire.Frame
		_ = theirs.ReceiveRequest(&request)
		_ = theirs.SendFailure(request.Call, status.Error(codes.InvalidArgument, "no"))
		_ = theirs.ReceiveRequest(&request)
		_ = theirs.SendAnswer(request.Call, &stagev1.ScaleResponse{Nodes: 3})
		_ = theirs.Close()
	}()
	if _, err := ask(t.Context(), ours); status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "no" {
		t.Fatalf("error %v", err)
	}
	if answer, err := ask(t.Context(), ours); err != nil || answer.GetNodes() != 3 {
		t.Fatalf("%v, error %v", answer, err)
	}
	for range 2 {
		if _, err := ask(t.Context(), ours); status.Code(err) != codes.Unavailable {
			t.Errorf("error %v, want unavailable: the plugin is gone", err)
		}
	}
}

func TestAnAnswerAheadOfItsCallIsRefused(t *testing.T) {
	ours, theirs := pairOf(t)
	go func() { _ = theirs.SendAnswer(9, &stagev1.ScaleResponse{}) }()
	if _, err := ask(t.Context(), ours); err == nil {
		t.Error("it is taken")
	}
}

func TestACancelledCallSendsNothing(t *testing.T) {
	ours, theirs := pairOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ask(ctx, ours); status.Code(err) != codes.Canceled {
		t.Fatalf("error %v, want cancelled", err)
	}
	_ = ours.Close()
	var request wire.Frame
	if theirs.ReceiveRequest(&request) == nil {
		t.Errorf("%+v was sent", request)
	}
}

// givenUp is a context that is cancelled once a call has begun with it.
type givenUp struct {
	context.Context
	begun bool
}

func (g *givenUp) Err() error {
	if !g.begun {
		g.begun = true
		return nil
	}
	return context.Canceled
}

// A call that is given up as the plugin ends tells the end, and so does the next one.
func TestAnEndIsToldOfACallThatIsGivenUp(t *testing.T) {
	ours, theirs := pairOf(t)
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []context.Context{&givenUp{Context: t.Context()}, t.Context()} {
		if _, err := ask(ctx, ours); status.Code(err) != codes.Unavailable {
			t.Errorf("error %v, want unavailable", err)
		}
	}
}

// A request that was given up half sent leaves a channel of no use, for the plugin would take the next one for the rest of it.
func TestNothingFollowsHalfARequest(t *testing.T) {
	ours, err := newChannel()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(ours.theirs)
	if err != nil {
		t.Fatal(err)
	}
	ours.started()
	t.Cleanup(func() { _ = ours.Close(); _ = conn.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1)) // a part is sent; the rest has no room
		cancel()
		begun <- err
	}()
	long := &stagev1.ConfigureRequest{ConfigJson: strings.Repeat("x", 8<<20)}
	if err := ours.Invoke(ctx, "/long", long, &stagev1.ConfigureResponse{}); status.Code(err) != codes.Canceled {
		t.Fatalf("error %v, want that it was given up", err)
	}
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), ours); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "a request was sent in part") {
		t.Errorf("error %v, want that a request was sent in part", err)
	}
}

// No process that is started meanwhile inherits either end, or the channel would not end with its plugin.
func TestNobodyElseInheritsAChannel(t *testing.T) {
	c, err := newChannel()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, end := range map[string]*os.File{"ours": c.socket.file, "theirs": c.theirs} {
		flags, _, failed := syscall.Syscall(syscall.SYS_FCNTL, end.Fd(), syscall.F_GETFD, 0)
		if failed != 0 || flags&syscall.FD_CLOEXEC == 0 {
			t.Errorf("%s: flags %#x, error %v: it stays open in new processes", name, flags, failed)
		}
	}
}
