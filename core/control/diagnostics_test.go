package control

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A call whose time is over is that, whoever notices first.
func TestTimeIsOverWhoeverNotices(t *testing.T) {
	for code, want := range map[codes.Code]bool{codes.DeadlineExceeded: true, codes.Unavailable: false, codes.Canceled: false} {
		if got := errors.Is(fromStatus(status.Error(code, "")), context.DeadlineExceeded); got != want {
			t.Errorf("%v: the time is over: %t, want %t", code, got, want)
		}
	}
}

func TestFailuresAreToldPlainly(t *testing.T) {
	for message, want := range map[string]string{
		`connection error: desc = "error reading server preface: EOF"`:                                        "the connection was closed",
		`connection error: desc = "error reading server preface: remote error: tls: bad certificate"`:         "remote error: tls: bad certificate",
		`connection error: desc = "transport: authentication handshake failed: tls: unknown authority"`:       "tls: unknown authority",
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connection refused"`: "dial tcp 127.0.0.1:1: connection refused",
		`it is ending`: "it is ending",
		``:             "",
	} {
		if got := plainly(message); got != want {
			t.Errorf("%s: told as %q, want %q", message, got, want)
		}
	}
}
