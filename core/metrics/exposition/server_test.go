package exposition

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestServerServesUntilItIsClosed(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, err := Listen(t.Context(), "127.0.0.1:0", handlerOf(full(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Loopback() {
		t.Errorf("%s is no loopback", s.Addr())
	}
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + s.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // it was read
	if !strings.Contains(string(text), "\nquartet_rounds_total ") || !strings.Contains(string(text), "\ngo_goroutines ") {
		t.Errorf("got %s", text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", s.Addr()); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
}

func TestServerClosesOnAHangingRequest(t *testing.T) {
	defer goleak.VerifyNone(t)
	asked := make(chan struct{})
	s, err := Listen(t.Context(), "127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAddressesThatCannotBeHad(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tc := range map[string]struct{ address, want string }{
		"taken":     {taken.Addr().String(), "address already in use"},
		"no port":   {"127.0.0.1", "missing port"},
		"no number": {"127.0.0.1:nowhere", "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Listen(t.Context(), tc.address, http.NotFoundHandler())
			if err == nil {
				_ = s.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
		})
	}
}
