package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/coretest"
)

func TestMain(m *testing.M) {
	callIfAsked()
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// fake is a backend that notes its orders and does what a test says.
type fake struct {
	mutex  sync.Mutex
	orders []string
	files  []backend.JobFile

	submit func(backend.JobFile) ([]string, error)
	cancel func(job string) error
	read   func(ctx context.Context, l backend.Log, to io.Writer) error
	shot   []byte
}

func (f *fake) note(order string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.orders = append(f.orders, order)
}

func (f *fake) noted() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.orders)
}

func (f *fake) Submit(_ context.Context, file backend.JobFile) ([]string, error) {
	f.note("submit " + file.Name)
	if f.submit == nil {
		return []string{"a", "b"}, nil
	}
	return f.submit(file)
}

func (f *fake) Cancel(_ context.Context, job string) error {
	f.note("cancel " + job)
	if f.cancel == nil {
		return nil
	}
	return f.cancel(job)
}

func (f *fake) SetHealth(_ context.Context, node string, h core.Health) error {
	f.note(h.String() + " " + node)
	return nil
}

func (f *fake) ReadLog(ctx context.Context, l backend.Log, to io.Writer) error {
	return f.read(ctx, l, to)
}

func (f *fake) WriteSnapshot(_ context.Context, to io.Writer) error {
	_, err := to.Write(f.shot)
	return err
}

func (*fake) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, io.EOF
}
func (*fake) Apply(context.Context, []core.Change) error { return nil }
func (*fake) Capabilities() []core.Capability            { return nil }

// folder is one whose path is short enough for a socket.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// discard is a log that nobody reads.
var discard = slog.New(slog.DiscardHandler)

// serve serves a fake on a socket until the test ends.
func serve(t testing.TB, f backend.Operated, b *Board, log *slog.Logger) (*Server, string) {
	t.Helper()
	path := filepath.Join(folder(t), SocketName)
	s := NewServer(f, b, log)
	t.Cleanup(func() { must(t, s.Close()) })
	if err := s.ServeSocket(path); err != nil {
		t.Fatal(err)
	}
	return s, path
}

func dial(t testing.TB, path string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func cluster() *core.Cluster { return coretest.MakeCluster().Nodes(2, "t4", 4).Obj() }

// diagnostics are those of an error, or nil.
func diagnostics(err error) core.Diagnostics {
	found, _ := errors.AsType[core.Diagnostics](err)
	return found
}
