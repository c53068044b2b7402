package wire_test

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// channelOf returns a channel that reads what is written to the connection, and the other way round.
func channelOf(t testing.TB) (*wire.Channel, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return wire.NewChannel(ours), theirs
}

// framed is a message after its length.
func framed(t testing.TB, m proto.Message) []byte {
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// TestFramesAreTheMessagesOfTheContract holds what a channel reads and writes to the generated code.
func TestFramesAreTheMessagesOfTheContract(t *testing.T) {
	view := &stagev1.AllocateRequest{View: &stagev1.ViewUpdate{Sequence: 3, Accelerators: []string{"t4"}}}
	encoded, err := proto.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		send    func(*wire.Channel) error
		receive func(*wire.Channel, *wire.Frame) error
		message proto.Message
		want    wire.Frame
	}{
		"request": {
			send:    func(c *wire.Channel) error { return c.SendRequest("/s/M", 7, view) },
			receive: (*wire.Channel).ReceiveRequest,
			message: &stagev1.ExchangeRequest{Method: "/s/M", Call: 7, Message: encoded},
			want:    wire.Frame{Method: "/s/M", Call: 7, Message: encoded},
		},
		"answer": {
			send:    func(c *wire.Channel) error { return c.SendAnswer(1<<40, view) },
			receive: (*wire.Channel).ReceiveAnswer,
			message: &stagev1.ExchangeResponse{Call: 1 << 40, Message: encoded},
			want:    wire.Frame{Call: 1 << 40, Message: encoded},
		},
		"failure": {
			send:    func(c *wire.Channel) error { return c.SendFailure(8, status.Error(codes.NotFound, "no such thing")) },
			receive: (*wire.Channel).ReceiveAnswer,
			message: &stagev1.ExchangeResponse{Call: 8, Code: 5, Error: "no such thing"},
			want:    wire.Frame{Call: 8, Code: 5, Error: "no such thing"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, conn := channelOf(t)
			go func() { _ = tc.send(c) }()
			written := make([]byte, 1<<10)
			n, err := conn.Read(written)
			if err != nil {
				t.Fatal(err)
			}
			got := tc.message.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(written[4:n], got); err != nil || int(binary.BigEndian.Uint32(written)) != n-4 {
				t.Fatalf("%d bytes, length %d, error %v", n, binary.BigEndian.Uint32(written), err)
			}
			if !proto.Equal(got, tc.message) {
				t.Errorf("wrote %v, want %v", got, tc.message)
			}
			go func() { // in pieces, two frames in a row
				for _, b := range append(framed(t, tc.message), framed(t, tc.message)...) {
					_, _ = conn.Write([]byte{b})
				}
			}()
			for range 2 {
				var frame wire.Frame
				if err := tc.receive(c, &frame); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, frame); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestAWaitGoesOnAfterADeadline(t *testing.T) {
	ours, conn := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = conn.Close() })
	c := wire.NewChannel(ours)
	frame, whole := wire.Frame{}, framed(t, &stagev1.ExchangeResponse{Call: 2})
	go func() { _, _ = conn.Write(whole[:5]) }()
	_ = ours.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if err := c.ReceiveAnswer(&frame); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("error %v, want a deadline", err)
	}
	_ = ours.SetDeadline(time.Time{})
	go func() { _, _ = conn.Write(whole[5:]) }()
	if err := c.ReceiveAnswer(&frame); err != nil || frame.Call != 2 {
		t.Errorf("%+v, error %v", frame, err)
	}
}

func TestWhatCannotBeSentIsNotSent(t *testing.T) {
	c, _ := channelOf(t) // nobody reads: a write would block
	for want, message := range map[codes.Code]proto.Message{
		codes.Internal:          &stagev1.Verdict{Message: "\xff"},
		codes.ResourceExhausted: &stagev1.Verdict{Message: strings.Repeat("x", wire.MaxMessage)},
	} {
		if err := c.SendAnswer(1, message); status.Code(err) != want {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

func FuzzChannel(f *testing.F) {
	f.Add(framed(f, &stagev1.ExchangeRequest{Method: "/s/M", Call: 7, Message: []byte("x")}))
	f.Add(framed(f, &stagev1.ExchangeResponse{Code: 3, Error: "no", Call: 1}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		for _, receive := range []func(*wire.Channel, *wire.Frame) error{(*wire.Channel).ReceiveRequest, (*wire.Channel).ReceiveAnswer} {
			c, conn := channelOf(t)
			go func() { _, _ = conn.Write(bytes); _ = conn.Close() }()
			var frame wire.Frame
			for receive(c, &frame) == nil {
			}
			_ = c.Close()
		}
	})
}
