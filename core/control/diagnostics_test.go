package control

import "testing"

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
