package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// who is an event in short.
func who(e Event) string { return e.Job + "/" + e.Member }

func helloOf(member string) func(Event) bool {
	return func(e Event) bool { return e.Hello != nil && e.Member == member }
}

// What a hello says of its job is not believed, its token is, and no event repeats it.
func TestTheTokenSaysWhoSpeaks(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	s := r.start(t, "train", "other")
	e := r.environment(t, "train", "m1")
	e.Job = "other"
	c := Dial(e)
	t.Cleanup(c.Close)
	must(t, c.Report(Report{Replicas: 1, Nodes: 1, Progress: 3}))
	greeted := false
	until(t, s, func(e Event) bool { // the report comes with the hello or after it
		if who(e) != "train/m1" {
			t.Errorf("heard as %s, want train/m1", who(e))
		}
		if e.Hello != nil {
			greeted = true
			if e.Hello.Token != "" {
				t.Errorf("hello %+v, want one without a token", e.Hello)
			}
		}
		return e.Report != nil
	})
	if !greeted {
		t.Error("no hello came before the report")
	}
	if n, err := s.Send("other", ToJob{Stop: &Stop{}}); n != 0 || err != nil {
		t.Errorf("as the other job %d are told, %v; want none", n, err)
	}
}

// Who is not admitted is told why, and so is the server; the token is in neither.
func TestNotAdmitted(t *testing.T) {
	cases := map[string]struct {
		admit Admit
		token string
		want  string
	}{
		"a token of nobody":       {byToken, "nobodys", `job "train", rank 0, is not admitted: the token is nobody's`},
		"no token":                {byToken, "", `is not admitted: the token is nobody's`},
		"a job that is not there": {byToken, tokenOf("gone", "m"), `job "gone" is not expected`},
		"nobody to ask": {func(context.Context, Hello) (Identity, error) {
			return Identity{}, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}, "some", "is not admitted: dial tcp: connection refused"},
		"an error that repeats the token": {func(_ context.Context, h Hello) (Identity, error) {
			return Identity{}, errors.New("no such token: " + h.Token)
		}, "very-secret", "is not admitted: no such token: TOKEN"},
		"no answer in time": {func(ctx context.Context, _ Hello) (Identity, error) {
			<-ctx.Done()
			return Identity{}, ctx.Err()
		}, "some", "is not admitted: context deadline exceeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := tlsPlace(t, newAuthority(t))
			r.admit = tc.admit
			if strings.Contains(tc.want, "deadline") {
				r.hello = 2 * time.Second // a handshake takes a moment
			}
			s := r.start(t, "train")
			conn := r.open(t)
			say(conn, `{"hello": {"protocol": 1, "job": "train", "rank": 0, "token": "`+tc.token+`"}}`+"\n")
			e := next(t, s)
			if e.Err == nil || !e.Gone || !strings.Contains(e.Err.Error(), tc.want) {
				t.Errorf("got %+v, want %q", e, tc.want)
			}
			answer, _ := bufio.NewReader(conn).ReadString('\n')
			if !strings.Contains(answer, strings.ReplaceAll(tc.want, `"`, `\"`)) {
				t.Errorf("answered %q, want %q", answer, tc.want)
			}
			if tc.token == "very-secret" && strings.Contains(answer+e.Err.Error(), tc.token) {
				t.Errorf("the token is told: %q, %v", answer, e.Err)
			}
		})
	}
}

// While one is being admitted, others come and talk; the server can be closed.
func TestSlowAdmissionHoldsUpNobody(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	asked := make(chan struct{})
	r.admit = func(ctx context.Context, h Hello) (Identity, error) {
		who, err := byToken(ctx, h)
		if who.Member == "slow" {
			close(asked)
			<-ctx.Done()
			return Identity{}, ctx.Err()
		}
		return who, err
	}
	s := r.start(t, "train")
	say(r.open(t), `{"hello": {"protocol": 1, "job": "train", "rank": 0, "token": "`+tokenOf("train", "slow")+`"}}`+"\n")
	<-asked
	c := r.dial(t, "train", "quick", 0)
	must(t, c.Done())
	until(t, s, func(e Event) bool { return e.Done != nil && e.Member == "quick" })
	must(t, s.Close())
}

// What does not speak TLS, or speaks it badly, is refused, in words where it can read them, and harms nobody.
func TestBeforeTheHandshake(t *testing.T) {
	cases := map[string]struct{ say, want, wantAnswer string }{
		"plain text":       {`{"hello": {"protocol": 1, "job": "train", "rank": 0}}` + "\n", "this port speaks TLS only", "this port speaks TLS only"},
		"HTTP":             {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "this port speaks TLS only", "this port speaks TLS only"},
		"a broken hello":   {"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", "TLS handshake: ", ""},
		"an oversized one": {"\x16\x03\x01\xff\xff" + strings.Repeat("x", 1<<16), "TLS handshake: ", ""},
		"too old a version": {"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03" + strings.Repeat("r", 32) + "\x00\x00\x04\x13\x01\x00\x2f\x01\x00", // TLS 1.2
			"TLS handshake: tls: client offered only unsupported versions", ""},
	}
	r := tlsPlace(t, newAuthority(t))
	s := r.start(t, "train")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conn := r.plain(t)
			say(conn, tc.say)
			if e := until(t, s, isGone); e.Job != "" || e.Err == nil || !strings.Contains(e.Err.Error(), tc.want) {
				t.Errorf("got %+v, want %q", e, tc.want)
			}
			if answer, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(answer, tc.wantAnswer) {
				t.Errorf("answered %q, want %q", answer, tc.wantAnswer)
			}
			c := r.dial(t, "train", "m", 0)
			must(t, c.Done())
			until(t, s, func(e Event) bool { return e.Done != nil })
			c.Close()
			until(t, s, isGone)
		})
	}
}

// Who opens connections and says nothing is hung up on after a while, takes the place of nobody else, and is not waited for.
func TestHandshakesThatNeverEnd(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	r.hello = 200 * time.Millisecond
	s := r.start(t, "train")
	const many = 300
	var silent []net.Conn
	for range many {
		silent = append(silent, r.plain(t))
	}
	c := r.dial(t, "train", "m", 0)
	must(t, c.Report(Report{Replicas: 1, Nodes: 1}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, conn := range silent {
			_, _ = conn.Read(make([]byte, 1)) // until it is hung up on
		}
	}()
	refused := 0
	for reported := false; refused < many || !reported; {
		switch e := next(t, s); {
		case e.Report != nil:
			reported = true
		case e.Gone && e.Job == "" && e.Err != nil && strings.Contains(e.Err.Error(), "no hello within 200ms"):
			refused++
		}
	}
	<-ended
	if n, err := s.Send("train", ToJob{Checkpoint: &Checkpoint{}}); n != 1 || err != nil {
		t.Errorf("%d are told, %v; want the one", n, err)
	}
}

// A machine that opens many connections makes room for others by its own.
func TestUnknownClientsMakeRoomByMachine(t *testing.T) {
	on := func(machines ...string) (all []unknownClient) {
		for _, m := range machines {
			all = append(all, unknownClient{machine: m})
		}
		return all
	}
	cases := map[string]struct {
		all  []unknownClient
		want int
	}{
		"one machine":      {on("a", "a", "a"), 0},
		"one has most":     {on("a", "b", "c", "b", "a", "b"), 1},
		"as many":          {on("a", "b", "b", "a"), 0},
		"all are others":   {on("a", "b", "c"), 0},
		"a unix socket":    {on("", "", ""), 0},
		"the last is many": {on("a", "a", "b", "b", "b"), 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := foremost(tc.all); got != tc.want {
				t.Errorf("number %d makes room, want %d", got, tc.want)
			}
		})
	}
}

// A client does not speak to a server that it cannot know.
func TestServerThatIsNotTrusted(t *testing.T) {
	known := newAuthority(t)
	cases := map[string]struct {
		authority *authority // of the server
		ca        string
		want      string
	}{
		"another authority":    {newAuthority(t), known.pem, "certificate signed by unknown authority"},
		"one that has expired": {authorityUntil(t, longAgo.AddDate(1, 0, 0)), "", "certificate has expired"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := tlsPlace(t, tc.authority)
			s := r.start(t, "train")
			e := r.environment(t, "train", "m")
			if tc.ca != "" {
				e.CA = tc.ca
			}
			c := Dial(e)
			t.Cleanup(c.Close)
			failsWith(t, c, tc.want)
			if told := next(t, s); told.Hello != nil || !told.Gone || told.Err == nil {
				t.Errorf("the server is told %+v, want that the other side does not trust it", told)
			}
		})
	}
}

// failsWith waits until the client says so.
func failsWith(t *testing.T, c *Client, want string) {
	t.Helper()
	for limit := time.After(patience); ; {
		if err := c.Err(); err != nil && strings.Contains(err.Error(), want) {
			return
		}
		select {
		case <-limit:
			t.Fatalf("error %v, want %q", c.Err(), want)
		case <-time.After(time.Millisecond):
		}
	}
}

// A token is read anew at each connect: the file is written anew before the token in it expires.
func TestTokenIsReadAnew(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	var valid atomic.Pointer[string]
	old, young := "old", "young"
	valid.Store(&old)
	r.admit = func(_ context.Context, h Hello) (Identity, error) {
		if h.Token != *valid.Load() {
			return Identity{}, errors.New("the token has expired")
		}
		return Identity{Job: "train", Member: h.Token}, nil
	}
	s := r.start(t, "train")
	e := r.environment(t, "train", "m")
	must(t, os.WriteFile(e.Token, []byte(old), 0o600))
	c := Dial(e)
	t.Cleanup(c.Close)
	until(t, s, helloOf(old))
	valid.Store(&young)
	s.Expect("train") // which cuts off who is there
	failsWith(t, c, "the token has expired")
	must(t, os.WriteFile(e.Token, []byte(young), 0o600))
	until(t, s, helloOf(young))
	must(t, os.Remove(e.Token))
	s.Expect("train")
	failsWith(t, c, "read token: ")
	must(t, os.WriteFile(e.Token, []byte(young), 0o600))
	until(t, s, helloOf(young))
}

// Members keep connections of the same rank apart; what one is told is not for others.
func TestMembers(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	s := r.start(t, "train")
	first, second := r.dial(t, "train", "a", 0), r.dial(t, "train", "b", 0)
	for seen := map[string]bool{}; len(seen) < 2; {
		if e := next(t, s); e.Hello != nil {
			seen[e.Member] = true
		}
	}
	world := World{Generation: 2, Rank: 1, Replicas: 3, Nodes: 2, Address: "train-a.train"}
	if n, err := s.SendTo("train", "b", ToJob{World: &world}); n != 1 || err != nil {
		t.Errorf("%d are told, %v; want one", n, err)
	}
	if got := waitFor(t, second, hasWorld).World; *got != world {
		t.Errorf("world (-want +got):\n%s", cmp.Diff(world, *got))
	}
	send(t, s, "train", ToJob{Checkpoint: &Checkpoint{}})
	if l := waitFor(t, first, func(l ToJob) bool { return l.Checkpoint != nil }); l.World != nil {
		t.Errorf("the other member is told %+v", l.World)
	}
	first.Close()
	if e := until(t, s, isGone); who(e) != "train/a" {
		t.Errorf("%s is gone, want train/a", who(e))
	}
}

func hasWorld(l ToJob) bool { return l.World != nil }

// Who connects later is told the latest of all and of its member, whichever came last.
func TestWhoConnectsLaterIsTold(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	s := r.start(t, "train")
	world := func(generation int64) *World { return &World{Generation: generation, Replicas: 1, Nodes: 1} }
	tell := func(member string, m ToJob) {
		n, err := s.SendTo("train", member, m)
		if n != 0 || err != nil {
			t.Errorf("%d are told, %v; want none", n, err)
		}
	}
	send(t, s, "train", ToJob{World: world(1), Tuning: &Tuning{BatchPerDevice: 9}})
	tell("own", ToJob{World: world(2)})
	tell("all", ToJob{World: world(3), Stop: &Stop{GraceSeconds: 4}, Checkpoint: &Checkpoint{}})
	want := map[string]ToJob{
		"own":  {World: world(2), Tuning: &Tuning{BatchPerDevice: 9}},
		"all":  {World: world(3), Tuning: &Tuning{BatchPerDevice: 9}, Stop: &Stop{GraceSeconds: 4}},
		"none": {World: world(1), Tuning: &Tuning{BatchPerDevice: 9}},
	}
	for member, want := range want {
		got := waitFor(t, r.dial(t, "train", member, 0), hasWorld)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s is told (-want +got):\n%s", member, d)
		}
	}
	send(t, s, "train", ToJob{World: world(5)})
	got := waitFor(t, r.dial(t, "train", "own", 1), hasWorld)
	if got.World.Generation != 5 {
		t.Errorf("generation %d, want that of the last one, which was for all: 5", got.World.Generation)
	}
	s.Expect("train")
	send(t, s, "train", ToJob{World: world(6)})
	if got := waitFor(t, r.dial(t, "train", "all", 0), hasWorld); got.Stop != nil {
		t.Error("a new run is told what a member of the old one was")
	}
	if _, err := s.SendTo("gone", "m", ToJob{}); err == nil {
		t.Error("a job can be told that is not expected")
	}
	if _, err := s.SendTo("train", "m", ToJob{World: &World{}}); err == nil {
		t.Error("a world without replicas can be told")
	}
}

// A member has as many connections as anybody needs, and no more.
func TestConnectionsOfAMember(t *testing.T) {
	s := newServer(nil, byToken)
	s.Expect("train")
	t.Cleanup(s.work.Wait)
	var peers []*peer
	t.Cleanup(func() {
		for _, p := range peers {
			close(p.gone)
		}
	})
	join := func(member string, rank int) error {
		near, far := net.Pipe()
		t.Cleanup(func() { hangUp(near); hangUp(far) })
		p, err := s.welcome("train", replica{member, rank}, near)
		if err == nil {
			peers = append(peers, p)
		}
		return err
	}
	for rank := range mostOfMember {
		must(t, join("a", rank))
	}
	if err := join("a", mostOfMember); err == nil {
		t.Error("there is one more")
	}
	must(t, join("a", 3)) // in the place of the one before
	must(t, join("b", 0))
}

// What a job said last arrives, also when it hangs up at once and was just told something that it does not read any more.
func TestTheFinalReportArrives(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	s := r.start(t, "train")
	for range 50 {
		c := r.dial(t, "train", "m", 0)
		until(t, s, helloOf("m"))
		for range 5 {
			send(t, s, "train", ToJob{Checkpoint: &Checkpoint{}, Tuning: &Tuning{BatchPerDevice: 7}})
		}
		must(t, c.Done())
		c.Close()
		done := false
		until(t, s, func(e Event) bool { done = done || e.Done != nil; return e.Gone })
		if !done {
			t.Fatal("the job was done, and nobody heard it")
		}
	}
}

// A side that never reads holds up nobody: neither who tells it something, nor who takes it off, which writes nothing.
func TestTheDeafHoldUpNobody(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	l := pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := Serve(l, byToken)
	t.Cleanup(func() { must(t, s.Close()) })
	trusted, err := authorities(r.authority.pem)
	if err != nil {
		t.Fatal(err)
	}
	issued := []tls.Certificate{r.authority.issue(t)}
	for name, tellIt := range map[string]bool{"told nothing": false, "told something": true} {
		t.Run(name, func(t *testing.T) {
			s.Expect("train")
			near, far := net.Pipe() // which holds nothing that is not read
			counted := &countedConn{Conn: near}
			l.conns <- tls.Server(counted, &tls.Config{Certificates: issued, SessionTicketsDisabled: true})
			deaf := tls.Client(far, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"})
			defer hangUp(deaf)
			say(deaf, `{"hello": {"protocol": 1, "job": "train", "rank": 0, "token": "`+tokenOf("train", "deaf")+`"}}`+"\n")
			until(t, s, helloOf("deaf"))
			before := counted.writes.Load()
			if tellIt {
				for range 3 {
					send(t, s, "train", ToJob{Tuning: &Tuning{BatchPerDevice: 3}})
				}
			}
			s.Forget("train")
			if n := counted.writes.Load(); n != before && !tellIt {
				t.Errorf("it is written to %d times before it is taken off", n-before)
			}
		})
	}
}

// pipes is a listener of connections that a test makes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return nil }

type countedConn struct {
	net.Conn
	writes atomic.Int64
}

// Read fails as connections of the network do when they are closed.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// An old version of TLS is refused by the client too.
func TestClientWantsTLS13(t *testing.T) {
	r := tlsPlace(t, newAuthority(t))
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	old := tls.NewListener(l, &tls.Config{MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{r.authority.issue(t)}})
	s := Serve(old, byToken)
	t.Cleanup(func() { must(t, s.Close()) })
	s.Expect("train")
	failsWith(t, r.dial(t, "train", "m", 0), "protocol version")
}

// Those who lost the same scheduler do not come back in step, and none waits longer than it might.
func TestJitter(t *testing.T) {
	first, second := newJitter(), newJitter()
	same := 0
	for wait := firstWait; wait <= longWait; wait *= 2 {
		a, b := first.of(wait), second.of(wait)
		for _, d := range []time.Duration{a, b} {
			if d < wait/2 || d > wait {
				t.Errorf("pauses for %v of %v", d, wait)
			}
		}
		if a == b {
			same++
		}
	}
	if same > 1 {
		t.Errorf("two clients wait for as long %d times", same)
	}
}
