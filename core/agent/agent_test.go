package agent

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come, on a busy machine too.
const patience = 2 * time.Minute

func socket(t testing.TB) string {
	folder, err := os.MkdirTemp("", "agent") // the folder of a test may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	return filepath.Join(folder, "agent.sock")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// say writes to a connection that the other side may end at any moment.
func say(conn io.Writer, text string) { _, _ = io.WriteString(conn, text) }

func send(t *testing.T, s *Server, job string, m ToJob) {
	t.Helper()
	_, err := s.Send(job, m)
	must(t, err)
}

func listen(t testing.TB, path string, jobs ...string) *Server {
	t.Helper()
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.Close()) })
	for _, job := range jobs {
		s.Expect(job)
	}
	return s
}

func dial(t testing.TB, path, job string, rank int) *Client {
	c := Dial(Environment{Job: job, Rank: rank, Replicas: rank + 1, Nodes: 1, Socket: path})
	t.Cleanup(c.Close)
	return c
}

func next(t *testing.T, s *Server) Event {
	t.Helper()
	select {
	case e := <-s.Events():
		return e
	case <-time.After(patience):
		t.Fatal("nothing was told")
		panic("unreachable")
	}
}

// until takes events up to one that is as wanted.
func until(t *testing.T, s *Server, want func(Event) bool) Event {
	t.Helper()
	for {
		if e := next(t, s); want(e) {
			return e
		}
	}
}

func waitFor(t *testing.T, c *Client, want func(ToJob) bool) ToJob {
	t.Helper()
	limit := time.After(patience)
	for {
		if l := c.Poll(); want(l) {
			return l
		}
		select {
		case <-c.Received():
		case <-limit:
			t.Fatal("the job was told nothing")
		}
	}
}

func hasTuning(l ToJob) bool { return l.Tuning != nil }
func hasStop(l ToJob) bool   { return l.Stop != nil }
func isGone(e Event) bool    { return e.Gone }

func TestConversation(t *testing.T) { overEach(t, converse) }

func converse(t *testing.T, at *place) {
	s := at.serve(t, "train")
	tuning := Tuning{BatchPerDevice: 32, AccumulationSteps: 1, LearningRateFactor: 1.5, BatchByReplica: []int{40, 24}}
	if n, err := s.Send("train", ToJob{Tuning: &tuning}); n != 0 || err != nil {
		t.Errorf("got %d replicas, %v; none is there yet", n, err)
	}
	c := at.dial(t, "train", 1)
	if got := waitFor(t, c, hasTuning).Tuning; !cmp.Equal(*got, tuning) {
		t.Errorf("tuning (-want +got):\n%s", cmp.Diff(tuning, *got))
	}
	hello := until(t, s, func(e Event) bool { return e.Hello != nil })
	if hello.Job != "train" || hello.Member != at.member || hello.Rank != 1 || hello.Gone || hello.Hello.Token != "" || !hello.Hello.Worlds {
		t.Errorf("hello %+v", hello)
	}
	report := Report{Replicas: 2, Nodes: 1, BatchPerDevice: 32, PassSeconds: 0.1, StepSeconds: 0.2, GradientSquare: 3, GradientVariance: 4, Progress: 5}
	if err := c.Report(report); err != nil {
		t.Error(err)
	}
	if got := until(t, s, func(e Event) bool { return e.Report != nil }); *got.Report != report {
		t.Errorf("report (-want +got):\n%s", cmp.Diff(report, *got.Report))
	}
	if n, err := s.Send("train", ToJob{Checkpoint: &Checkpoint{}, Stop: &Stop{GraceSeconds: 7}}); n != 1 || err != nil {
		t.Errorf("got %d replicas, %v; want one", n, err)
	}
	if l := waitFor(t, c, hasStop); l.Stop.GraceSeconds != 7 || l.Checkpoint == nil {
		t.Errorf("got %+v", l)
	}
	if err := c.Checkpointed(6); err != nil {
		t.Error(err)
	}
	if err := c.Done(); err != nil {
		t.Error(err)
	}
	c.Close()
	var checkpointed, done bool
	for !done {
		e := next(t, s)
		checkpointed = checkpointed || e.Checkpointed != nil && e.Checkpointed.Progress == 6
		done = e.Done != nil
	}
	if !checkpointed {
		t.Error("the checkpoint was not told")
	}
	if e := next(t, s); !e.Gone || e.Err != nil {
		t.Errorf("at the end %+v", e)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	path := socket(t)
	listen(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestListen(t *testing.T) {
	cases := map[string]struct {
		before func(t *testing.T, path string)
		want   string
	}{
		"nothing there": {func(*testing.T, string) {}, ""},
		"a socket that nobody serves": {func(t *testing.T, path string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			must(t, l.Close())
		}, ""},
		"a socket in use": {func(t *testing.T, path string) { listen(t, path) }, "another process serves it"},
		"a file": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "the file is not a socket"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := socket(t)
			tc.before(t, path)
			s, err := Listen(path)
			if err == nil {
				must(t, s.Close())
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(path); tc.want == "" && err == nil {
				t.Error("the socket is still there")
			}
		})
	}
}

// A line may be as long as MaxLine, its end included, and no longer.
func TestLongLines(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{20: true, 4096: true, 4097: true, 5000: true, MaxLine - 1: true, MaxLine: true, MaxLine + 1: false, MaxLine + 4096: false, 3 * MaxLine: false} {
		const line = `{"done": {}}`
		lines := newReader[FromJob](strings.NewReader(line + strings.Repeat(" ", length-len(line)-1) + "\n" + line + "\n"))
		for range 2 { // the second one is short
			l, err := lines.next()
			if want && (err != nil || l.Done == nil) || !want && (err == nil || !strings.Contains(err.Error(), "longer than 65536 bytes")) {
				t.Errorf("a line of %d bytes: %+v, %v; want it read: %v", length, l, err, want)
			}
			if !want {
				break
			}
		}
	}
}

// Garbage ends the connection with an error in words on both sides, and harms no other.
func TestGarbage(t *testing.T) { overEach(t, garbage) }

func garbage(t *testing.T, at *place) {
	hello := at.hello("train", 0)
	cases := map[string]struct{ say, want string }{
		"no JSON":                  {"GET / HTTP/1.1\n", "invalid character"},
		"no hello":                 {`{"done": {}}` + "\n", "the first line has no hello"},
		"another protocol":         {`{"hello": {"protocol": 2, "job": "train", "rank": 0}}` + "\n", "protocol 2 is not spoken here, only 1"},
		"a job nobody expects":     {at.hello("other", 0), `job "other" is not expected`},
		"a rank below 0":           {`{"hello": {"protocol": 1, "job": "train", "rank": -1}}` + "\n", "hello: rank is -1"},
		"a line without end":       {strings.Repeat("x", MaxLine), "longer than 65536 bytes"},
		"a string for a number":    {hello + `{"report": {"replicas": "four"}}` + "\n", "cannot unmarshal string"},
		"two problems":             {hello + `{"report": {"replicas": 0, "nodes": 1, "progress": -1}}` + "\n", "replicas is 0, must be from 1 to 1000000\nreport: progress is -1"},
		"hello as somebody else":   {hello + `{"hello": {"protocol": 1, "job": "other", "rank": 0}}` + "\n", `hello of job "other", rank 0, after that of job "train", rank 0`},
		"an end in the middle":     {hello + `{"repo`, "connection ended in the middle"},
		"a list":                   {hello + "[]\n", "cannot unmarshal array"},
		"a number that is too big": {hello + `{"checkpointed": {"progress": 1e999}}` + "\n", "1e999"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := at.serve(t, "train", "well")
			conn := at.open(t)
			go func() {
				say(conn, tc.say)
				_ = conn.(interface{ CloseWrite() error }).CloseWrite() // likewise
			}()
			if e := until(t, s, isGone); e.Err == nil || !strings.Contains(e.Err.Error(), tc.want) {
				t.Errorf("got %v, want %q", e.Err, tc.want)
			}
			answer, _ := bufio.NewReader(conn).ReadString('\n')
			if want := strings.ReplaceAll(strings.ReplaceAll(tc.want, `"`, `\"`), "\n", `\n`); !strings.Contains(answer, want) {
				t.Errorf("answered %q, want %q", answer, tc.want)
			}
			c := at.dial(t, "well", 0)
			must(t, c.Done())
			until(t, s, func(e Event) bool { return e.Job == "well" && e.Done != nil })
			must(t, s.Close())
		})
	}
}

func TestUnknownIsIgnored(t *testing.T) {
	overEach(t, func(t *testing.T, at *place) {
		s := at.serve(t, "train")
		hello := strings.Replace(at.hello("train", 0), `{"protocol"`, `{"colour": "red", "protocol"`, 1)
		say(at.open(t), strings.TrimSuffix(hello, "}\n")+`, "song": {"verses": 3}}`+"\n{}\n"+`{"done": {}}`+"\n")
		until(t, s, func(e Event) bool { return e.Done != nil && !e.Gone })
	})
}

// A scheduler that went and came again is told what it must know, and the job is told of it.
func TestSchedulerRestarts(t *testing.T) { overEach(t, restart) }

func restart(t *testing.T, at *place) {
	first := at.serve(t, "train")
	c := at.dial(t, "train", 0)
	must(t, c.Checkpointed(3))
	must(t, c.Report(Report{Replicas: 1, Nodes: 1, Progress: 4}))
	until(t, first, func(e Event) bool { return e.Report != nil })
	must(t, first.Close())
	second := at.serve(t, "train")
	send(t, second, "train", ToJob{Tuning: &Tuning{BatchPerDevice: 9}})
	e := until(t, second, func(e Event) bool { return e.Hello != nil })
	if e.Report == nil || e.Report.Progress != 4 || e.Checkpointed == nil || e.Checkpointed.Progress != 3 {
		t.Errorf("the new scheduler receives %+v", e)
	}
	if got := waitFor(t, c, hasTuning).Tuning.BatchPerDevice; got != 9 {
		t.Errorf("told a batch of %d", got)
	}
	if err := c.Err(); err == nil {
		t.Error("the client knows nothing of the interruption")
	}
}

// A new run of a job begins without what the run before was told, and without its replicas.
func TestExpectAnew(t *testing.T) { overEach(t, expectAnew) }

func expectAnew(t *testing.T, at *place) {
	s := at.serve(t, "train")
	old := at.dial(t, "train", 0)
	until(t, s, func(e Event) bool { return e.Hello != nil })
	send(t, s, "train", ToJob{Stop: &Stop{GraceSeconds: 1}})
	waitFor(t, old, hasStop)
	old.Close()
	until(t, s, isGone)
	s.Expect("train")
	c := at.dial(t, "train", 0)
	until(t, s, func(e Event) bool { return e.Hello != nil })
	send(t, s, "train", ToJob{Tuning: &Tuning{BatchPerDevice: 9}})
	if l := waitFor(t, c, hasTuning); l.Stop != nil {
		t.Error("the new run is stopped by the order to the old one")
	}
	s.Forget("train")
	if _, err := s.Send("train", ToJob{}); err == nil {
		t.Error("a forgotten job can be told")
	}
}

// The second connection of a rank takes the place of the first, which is not told to be gone.
func TestReplicaConnectsAgain(t *testing.T) { overEach(t, connectAgain) }

func connectAgain(t *testing.T, at *place) {
	s := at.serve(t, "train")
	for range 2 {
		say(at.open(t), at.hello("train", 0))
		if e := next(t, s); e.Gone || e.Hello == nil {
			t.Errorf("got %+v", e)
		}
	}
	if n, _ := s.Send("train", ToJob{Checkpoint: &Checkpoint{}}); n != 1 {
		t.Errorf("%d replicas, want one", n)
	}
}

// A scheduler that reads nothing costs a job nothing: of what waits, the latest is kept.
func TestNobodyListens(t *testing.T) { overEach(t, nobodyListens) }

func nobodyListens(t *testing.T, at *place) {
	s := at.serve(t, "train")
	c := at.dial(t, "train", 0)
	const last = 20_000 // reports, far more than are read ahead
	for i := range last + 1 {
		if err := c.Report(Report{Replicas: 1, Nodes: 1, Progress: float64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	until(t, s, func(e Event) bool {
		count++
		return e.Report != nil && e.Report.Progress == last
	})
	if count > last {
		t.Errorf("%d events", count)
	}
}

// A server that nobody listens to any more can be closed while jobs talk.
func TestCloseWhileJobsTalk(t *testing.T) { overEach(t, closeWhileJobsTalk) }

func closeWhileJobsTalk(t *testing.T, at *place) {
	s := at.serve(t, "train")
	c := at.dial(t, "train", 0)
	until(t, s, func(e Event) bool { return e.Hello != nil })
	for len(s.events) < cap(s.events) {
		must(t, c.Report(Report{Replicas: 1, Nodes: 1}))
	}
	closed := make(chan struct{})
	go func() {
		must(t, s.Close())
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("still waiting")
	}
}

// A scheduler that does not even take the connection holds up neither the job nor its end.
func TestCloseDoesNotHang(t *testing.T) {
	path := socket(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, c := range map[string]*Client{"deaf": dial(t, path, "train", 0), "absent": dial(t, path+"-none", "train", 0)} {
		must(t, c.Done())
		ended := make(chan struct{})
		go func() {
			c.Close()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("%s: still waiting", name)
		}
	}
}

func TestWithoutScheduler(t *testing.T) {
	c := Dial(Environment{Job: "train"})
	if c != nil {
		t.Fatal("there is a client")
	}
	if err := c.Report(Report{Replicas: 1, Nodes: 1}); err != nil {
		t.Error(err)
	}
	if c.Poll() != (ToJob{}) || c.Received() != nil || c.Err() != nil || c.Checkpointed(1) != nil || c.Done() != nil {
		t.Error("it is told something")
	}
	c.Close()
}

func TestReportThatMakesNoSense(t *testing.T) {
	c := dial(t, socket(t), "train", 0)
	err := c.Report(Report{Replicas: 2, Nodes: 3, StepSeconds: -1})
	const want = "report: nodes is 3, must be from 1 to 2\nreport: step_seconds is -1, must be a number from 0 to 1e+30"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestEnvironment(t *testing.T) {
	e := Environment{Job: "train", Rank: 2, Replicas: 4, Nodes: 2, Rendezvous: "/run/1", Checkpoint: "/keep", Socket: "/run/agent.sock"}
	far := tlsPlace(t, newAuthority(t)).environment(t, "train", "m")
	far.Rank, far.Replicas, far.Nodes = 2, 4, 2 // they meet by address
	with := func(change func(*Environment)) []string {
		changed := far
		change(&changed)
		return changed.Variables()
	}
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "token")
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	long, two := file(strings.Repeat("x", maxToken+1)), file("one\ntwo\n")
	cases := map[string]struct {
		variables []string
		want      Environment
		wantErr   string
	}{
		"alone":              {nil, Environment{Replicas: 1, Nodes: 1}, ""},
		"as it was written":  {e.Variables(), e, ""},
		"on another machine": {far.Variables(), far, ""},
		"a rank too high":    {[]string{"QUARTET_RANK=2", "QUARTET_REPLICAS=2", "QUARTET_RENDEZVOUS=/x"}, Environment{}, `QUARTET_RANK: "2" is not a whole number from 0 to 1`},
		"no number":          {[]string{"QUARTET_REPLICAS=some"}, Environment{}, `QUARTET_REPLICAS: "some" is not a whole number from 1 to 1000000`},
		"nowhere to meet":    {[]string{"QUARTET_REPLICAS=2"}, Environment{}, "QUARTET_RENDEZVOUS: is not set, but there are 2 replicas"},
		"a job without name": {[]string{"QUARTET_AGENT=/x"}, Environment{}, "QUARTET_JOB: is not set, but QUARTET_AGENT is"},
		"two problems":       {[]string{"QUARTET_AGENT=/x", "QUARTET_NODES=0"}, Environment{}, "QUARTET_NODES: \"0\" is not a whole number from 1 to 1\nQUARTET_JOB: is not set, but QUARTET_AGENT is"},
		"nothing but a host": {
			[]string{"QUARTET_JOB=j", "QUARTET_AGENT=tls://host"},
			Environment{},
			"QUARTET_AGENT: \"tls://host\" is not tls://HOST:PORT\nQUARTET_AGENT_CA: is not set, but QUARTET_AGENT is an address\nQUARTET_AGENT_TOKEN: is not set, but QUARTET_AGENT is an address",
		},
		"an unknown scheme":       {with(func(e *Environment) { e.Socket = "tcp://host:1" }), Environment{}, `QUARTET_AGENT: "tcp://host:1": there is no scheme "tcp", only tls`},
		"a path after the port":   {with(func(e *Environment) { e.Socket = "tls://host:1/agent" }), Environment{}, `QUARTET_AGENT: "tls://host:1/agent" is not tls://HOST:PORT`},
		"a path of a certificate": {with(func(e *Environment) { e.CA = "/etc/ca.pem" }), Environment{}, "QUARTET_AGENT_CA: holds no certificate in PEM"},
		"no file of a token":      {with(func(e *Environment) { e.Token = "/nowhere/token" }), Environment{}, "QUARTET_AGENT_TOKEN: read token: open /nowhere/token: no such file or directory"},
		"a token too long":        {with(func(e *Environment) { e.Token = long }), Environment{}, fmt.Sprintf("QUARTET_AGENT_TOKEN: read token: %q has 16385 bytes, must have from 1 to 16384", long)},
		"two lines for a token":   {with(func(e *Environment) { e.Token = two }), Environment{}, fmt.Sprintf("QUARTET_AGENT_TOKEN: read token: %q holds something else than a token", two)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			variables := make(map[string]string)
			for _, v := range tc.variables {
				name, value, _ := strings.Cut(v, "=")
				variables[name] = value
			}
			got, err := ReadEnvironment(func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("error %v, want %s", err, tc.wantErr)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(tc.want, got))
			}
		})
	}
}

// A job has as many connections as replicas, however many ranks it says hello as.
func TestARankThatIsNotThereIsRefused(t *testing.T) {
	path := socket(t)
	s := listen(t, path)
	s.ExpectReplicas("train", 2)
	for rank, want := range map[int]bool{0: true, 1: true, 2: false, MaxReplicas - 1: false} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		say(conn, fmt.Sprintf(`{"hello":{"protocol":%d,"job":"train","rank":%d}}`+"\n", Protocol, rank))
		e := next(t, s)
		if e.Rank != rank || (e.Hello != nil) != want || (e.Err == nil) != want {
			t.Errorf("rank %d: told %+v, want that it is welcome: %v", rank, e, want)
		}
		_ = conn.Close()
		if want {
			until(t, s, isGone)
		}
	}
}
