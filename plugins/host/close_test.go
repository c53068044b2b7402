package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/internal/syncbuffer"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// shortDir is t.TempDir with a path that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestALongFolderForTemporaryFiles is too long for the path of a socket.
func TestALongFolderForTemporaryFiles(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	p, err := faultyBinary(serveFaulty).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
}

// asked is an allocator in a process of its own, once it was asked a question at which it goes wrong. TMPDIR is a folder
// of the test's own, by which all its processes are known.
func asked(t *testing.T, fault string, level slog.Level) (log *syncbuffer.Buffer, temporary string, end func(), err error) {
	t.Helper()
	temporary = shortDir(t)
	t.Setenv("TMPDIR", temporary)
	log = &syncbuffer.Buffer{}
	b := faultyBinary(serveFaulty)
	b.EndTimeout = endTimeout(fault)
	b.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	c := host.Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "faulty", ID: "allocation/faulty", Config: core.Encode(faulty.Config{Fault: fault})}
	session, err := b.Session(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	limit := 500 * time.Millisecond
	if slices.Contains(faulty.Harmless, fault) {
		limit = 20 * time.Second // on a busy machine too
	}
	allocator, err := host.Allocator(t.Context(), host.Spec[core.Allocator]{
		ID: c.ID, Plugin: "faulty", Options: limited(host.Fail, limit),
		Dial: func(context.Context) (*host.Session, error) { return session, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Round(faulty.Round).Jobs(coretest.MakeJob("only").Replicas(1).Waiting()).Obj()
	_, err = allocator.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
	return log, temporary, session.Close, err
}

// TestCloseEndsEverything holds Close to its bound, whatever the plugin, its children and the children that left its
// group do.
func TestCloseEndsEverything(t *testing.T) {
	for _, fault := range []string{"", "stray", "daemon", "stray_exit", "daemon_exit", "stop", "hang", "panic_elsewhere", "kill", "flood"} {
		t.Run("after "+fault, func(t *testing.T) {
			_, temporary, end, _ := asked(t, fault, slog.LevelWarn)
			limit := time.AfterFunc(30*time.Second, func() { panic("Close does not end") })
			defer limit.Stop()
			end()
			end() // again, and at once
			if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
			if left := faulty.Sockets(temporary); len(left) > 0 {
				t.Errorf("folders left: %v", left)
			}
		})
	}
}

// TestCloseOfADeafPlugin shakes hands with a program that answers nothing, ignores every signal that it can, and has
// children that do the same.
func TestCloseOfADeafPlugin(t *testing.T) {
	temporary := shortDir(t)
	t.Setenv("TMPDIR", temporary)
	deaf := program(t, 0o700, "trap '' INT TERM HUP", "(while :; do sleep 1; done) &", "echo '1|1|unix|"+temporary+"/nobody|grpc|"+host.Certificate(t)+"'",
		"while :; do sleep 1; done")
	_, err := host.Binary{Name: "deaf", Path: deaf, StartTimeout: time.Second, EndTimeout: 200 * time.Millisecond}.Describe(t.Context())
	if err == nil {
		t.Error("it described itself")
	}
	if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if left := faulty.Sockets(temporary); len(left) > 0 {
		t.Errorf("folders left: %v", left)
	}
}

func TestOddLogsHurtNobody(t *testing.T) {
	log, _, end, err := asked(t, "odd_log", slog.LevelDebug)
	end()
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"level=INFO msg=1 plugin=faulty", "level=INFO msg=m plugin=faulty", `level=INFO msg=[1] plugin=faulty`, `level=ERROR msg="an odd entry" plugin=faulty a="{\"b\":1}"`,
		`level=WARN msg={ plugin=faulty`, "level=WARN msg=null plugin=faulty", "level=WARN msg=[] plugin=faulty",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, log)
		}
	}
	if strings.ContainsAny(log.String(), "\x00\x1b") || !utf8.ValidString(log.String()) {
		t.Errorf("control characters in the log: %q", log)
	}
}

func TestAFloodIsBounded(t *testing.T) {
	log, _, end, err := asked(t, "flood", slog.LevelWarn)
	end()
	if err != nil {
		t.Error(err)
	}
	if got := len(log.String()); got > 1<<20 {
		t.Errorf("%d bytes reached the log, of 16 MB", got)
	}
	if !strings.Contains(log.String(), "left out") {
		t.Errorf("nobody was told that lines were left out: %.1000s", log)
	}
}

func TestANastyErrorIsCleaned(t *testing.T) {
	_, _, end, err := asked(t, "nasty_error", slog.LevelWarn)
	end()
	if err == nil || len(err.Error()) > 2*core.MaxText || strings.ContainsAny(err.Error(), "\x00\x1b\x07") || !utf8.ValidString(err.Error()) || !strings.Contains(err.Error(), `plugin "faulty": `) {
		t.Errorf("error %.300q", fmt.Sprint(err))
	}
}

// TestFoldersLeftBehindAreRemoved leaves the folders of a host that lives, of one that was killed, and of somebody else.
func TestFoldersLeftBehindAreRemoved(t *testing.T) {
	temporary := shortDir(t)
	t.Setenv("TMPDIR", temporary)
	folder := func(name string) string {
		path := filepath.Join(temporary, "quartet-"+name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dead, live, other := folder("dead"), folder("live"), folder("other")
	for _, path := range []string{dead, live} {
		if err := os.WriteFile(filepath.Join(path, "host.lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := os.Open(filepath.Join(live, "host.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	p, err := faultyBinary(serveFaulty).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(faulty.Sockets(temporary)); got != 3 {
		t.Errorf("%d folders, want those of the live host, of somebody else, and ours", got)
	}
	p.Close()
	for path, want := range map[string]bool{dead: false, live: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(path), err == nil, want)
		}
	}
}
