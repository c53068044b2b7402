package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/internal/syncbuffer"
)

func TestOrdersReachTheBackend(t *testing.T) {
	f := &fake{}
	f.submit = func(file backend.JobFile) ([]string, error) {
		f.files = append(f.files, file)
		return []string{"x", "y"}, nil
	}
	_, path := serve(t, f, NewBoard(cluster()), discard)
	c := dial(t, path)
	file := backend.JobFile{Name: "jobs.yaml", Text: []byte("version: 1\n\xff"), Dir: "/some/\xff/where"}
	names, err := c.Submit(t.Context(), file)
	if err != nil || !slices.Equal(names, []string{"x", "y"}) {
		t.Errorf("Submit = %q, %v", names, err)
	}
	if diff := cmp.Diff([]backend.JobFile{file}, f.files); diff != "" {
		t.Errorf("files (-want,+got):\n%s", diff)
	}
	must(t, c.Cancel(t.Context(), "x"))
	must(t, c.SetHealth(t.Context(), "t4-1", core.Draining))
	must(t, c.SetHealth(t.Context(), "t4-1", core.Ready))
	want := []string{"submit jobs.yaml", "cancel x", "draining t4-1", "ready t4-1"}
	if diff := cmp.Diff(want, f.noted()); diff != "" {
		t.Errorf("orders (-want,+got):\n%s", diff)
	}
}

func TestDiagnosticsCrossTheWire(t *testing.T) {
	many := make(core.Diagnostics, 2000)
	for i := range many {
		many[i] = core.Diagnostic{Position: core.Position{File: "many.yaml", Line: i + 1}, Summary: strings.Repeat("x", 3*sentText)}
	}
	exact := core.Diagnostics{
		{Position: core.Position{File: "jobs.yaml", Line: 3, Column: 6}, Path: "jobs[0].name", Summary: `"a b" cannot name a job`, Hint: "use letters"},
		{Summary: "and more"},
	}
	f := &fake{submit: func(file backend.JobFile) ([]string, error) {
		switch file.Name {
		case "many":
			return nil, many
		case "garbage":
			return nil, core.Diagnostics{{Summary: "\xff\x00"}}
		case "other":
			return nil, errors.New("the disk is full")
		default:
			return nil, fmt.Errorf("submit: %w", exact)
		}
	}}
	_, path := serve(t, f, NewBoard(cluster()), discard)
	c := dial(t, path)
	submit := func(name string) error {
		_, err := c.Submit(t.Context(), backend.JobFile{Name: name, Dir: "/"})
		return err
	}
	if diff := cmp.Diff(exact, diagnostics(submit("exact"))); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	got := diagnostics(submit("many"))
	if len(got) != sentDiagnostics+1 || got[sentDiagnostics].Summary != "1500 more problems" || got[7].Position.Line != 8 {
		t.Errorf("of 2000 problems come %d", len(got))
	}
	if got := diagnostics(submit("garbage")); len(got) != 1 || got[0].Summary != "\uFFFD\x00" {
		t.Errorf("garbage comes as %q", got)
	}
	if err := submit("other"); err == nil || err.Error() != "the disk is full" || diagnostics(err) != nil {
		t.Errorf("a malfunction comes as %v", err)
	}
	_, err := c.Submit(t.Context(), backend.JobFile{Name: "x", Dir: "here"})
	if want := `working folder "here" is not an absolute path`; diagnostics(err).Error() != want {
		t.Errorf("a relative folder: %v, want %s", err, want)
	}
}

func TestUnknownNamesAreSuggested(t *testing.T) {
	f := &fake{
		cancel: func(string) error { return errors.New("no such job") },
		read:   func(context.Context, backend.Log, io.Writer) error { return errors.New("no such log") },
	}
	b := NewBoard(cluster())
	world := newWorld(t, b)
	world.submit("resnet", 2)
	world.submit("bert", 2)
	world.round()
	_, path := serve(t, f, b, discard)
	c := dial(t, path)
	log := func(job string) error {
		return c.ReadLog(t.Context(), backend.Log{Job: job}, io.Discard)
	}
	describe := func(job string) error {
		_, err := c.Describe(t.Context(), job)
		return err
	}
	health := func(node string) error { return c.SetHealth(t.Context(), node, core.Draining) }
	cases := map[string]struct {
		err  error
		want string
	}{
		"cancel":      {c.Cancel(t.Context(), "resnot"), `there is no job "resnot"; did you mean "resnet"? valid jobs: resnet, bert`},
		"describe":    {describe("bret"), `there is no job "bret"; did you mean "bert"? valid jobs: resnet, bert`},
		"log":         {log("zzz"), `there is no job "zzz"; valid jobs: resnet, bert`},
		"path":        {log("../../etc"), `there is no job "../../etc"; valid jobs: resnet, bert`},
		"cancel path": {c.Cancel(t.Context(), "../bert"), `there is no job "../bert"; did you mean "bert"? valid jobs: resnet, bert`},
		"node":        {health("t4-2"), `there is no node "t4-2"; did you mean "t4-0"? valid nodes: t4-0, t4-1`},
		"no node":     {health(""), `there is no node ""; valid nodes: t4-0, t4-1`},
		"down":        {c.SetHealth(t.Context(), "t4-0", core.Down), `a node cannot be made "down"; valid values: ready, draining`},
		"known job":   {c.Cancel(t.Context(), "bert"), "no such job"},
		"known log":   {log("bert"), "no such log"},
	}
	for name, tc := range cases {
		if tc.err == nil || tc.err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, tc.err, tc.want)
		}
	}
	if got := f.noted(); !slices.Equal(got, []string{"cancel resnot", "cancel bert"}) && !slices.Equal(got, []string{"cancel bert", "cancel resnot"}) {
		t.Errorf("the backend was asked %q: a name that is a path reaches it", got)
	}
}

func TestStreamsCarryEverything(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 3*chunkBytes/16+5)
	f := &fake{shot: text, read: func(_ context.Context, l backend.Log, to io.Writer) error {
		if l != (backend.Log{Job: "a", Rank: 3, Stderr: true}) {
			return fmt.Errorf("asked for %+v", l)
		}
		_, err := to.Write(text)
		return err
	}}
	_, path := serve(t, f, NewBoard(cluster()), discard)
	c := dial(t, path)
	var log, shot bytes.Buffer
	must(t, c.ReadLog(t.Context(), backend.Log{Job: "a", Rank: 3, Stderr: true}, &log))
	must(t, c.WriteSnapshot(t.Context(), &shot))
	if !bytes.Equal(log.Bytes(), text) || !bytes.Equal(shot.Bytes(), text) {
		t.Errorf("%d and %d bytes of %d arrive, or others", log.Len(), shot.Len(), len(text))
	}
}

func TestFollowingEnds(t *testing.T) {
	begun, ended := make(chan bool, 2), make(chan bool, 2)
	f := &fake{read: func(ctx context.Context, _ backend.Log, to io.Writer) error {
		if _, err := io.WriteString(to, "begun"); err != nil {
			return err
		}
		begun <- true
		<-ctx.Done()
		ended <- true
		return ctx.Err()
	}}
	await := func(c chan bool) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(patience):
			t.Fatal("nothing happens")
		}
	}
	s, path := serve(t, f, NewBoard(cluster()), discard)
	c := dial(t, path)
	follow := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() { done <- c.ReadLog(ctx, backend.Log{Job: "a", Follow: true}, io.Discard) }()
		await(begun)
		return done
	}

	ctx, leave := context.WithCancel(t.Context())
	done := follow(ctx)
	leave()
	await(ended)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the reader that leaves is told %v", err)
	}

	done = follow(t.Context())
	must(t, s.Close())
	await(ended)
	if err := <-done; err == nil || err.Error() != "the scheduler does not answer: it is ending" {
		t.Errorf("the reader that stays is told %v", err)
	}
}

func TestPanicsEndTheCallOnly(t *testing.T) {
	var log syncbuffer.Buffer
	f := &fake{
		submit: func(backend.JobFile) ([]string, error) { panic("boom") },
		read:   func(context.Context, backend.Log, io.Writer) error { panic("boom") },
	}
	_, path := serve(t, f, NewBoard(cluster()), slog.New(slog.NewTextHandler(&log, nil)))
	c := dial(t, path)
	_, unary := c.Submit(t.Context(), backend.JobFile{Dir: "/"})
	stream := c.ReadLog(t.Context(), backend.Log{Job: "a"}, io.Discard)
	for method, err := range map[string]error{"Submit": unary, "Logs": stream} {
		if want := "fault in the scheduler: " + method + " panicked"; status.Code(err) != codes.Internal || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if !strings.Contains(log.String(), "method=/quartet.control.v1.ControlService/"+method+" panic=boom stack=") {
			t.Errorf("the log does not tell of %s: %s", method, &log)
		}
	}
	must(t, c.Cancel(t.Context(), "a"))
}

func TestMessagesMayBeLarge(t *testing.T) {
	f := &fake{submit: func(file backend.JobFile) ([]string, error) { return []string{fmt.Sprint(len(file.Text))}, nil }}
	_, path := serve(t, f, NewBoard(cluster()), discard)
	c := dial(t, path)
	names, err := c.Submit(t.Context(), backend.JobFile{Text: make([]byte, MaxJobFile), Dir: "/"})
	if err != nil || names[0] != fmt.Sprint(MaxJobFile) {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := c.Submit(t.Context(), backend.JobFile{Text: make([]byte, MaxMessage), Dir: "/"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message that is too large: %v", err)
	}
}

func TestClose(t *testing.T) {
	s, path := serve(t, &fake{}, NewBoard(cluster()), discard)
	silent, err := net.Dial("unix", path) // which never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := dial(t, path)
	must(t, c.Cancel(t.Context(), "a"))
	unused := dial(t, path)
	must(t, s.Close())
	must(t, s.Close())
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if err := c.Cancel(t.Context(), "a"); err == nil || !errors.Is(err, ErrNotRunning) && status.Code(err) != codes.Unavailable {
		t.Errorf("an order after the end: %v", err)
	}
	if err := unused.Cancel(t.Context(), "a"); err == nil {
		t.Error("an order after the end is taken")
	}
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), path) {
		t.Errorf("Dial = %v", err)
	}
	if err := s.ServeSocket(path); !errors.Is(err, net.ErrClosed) {
		t.Errorf("serving again: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		t.Error(err)
	}
}
