package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/internal/syncbuffer"
	"github.com/quartet-sched/quartet/internal/unixsocket"
)

var file = backend.JobFile{Name: "jobs.yaml", Text: []byte("version: 1"), Dir: "/"}

// nobody is a user that is not the one of the tests.
const nobody = 65534

// callIfAsked makes the test binary a caller of a socket, or one who serves it until its standard input ends.
func callIfAsked() {
	role, path, _ := strings.Cut(os.Getenv("CONTROL_TEST_ROLE"), " ")
	switch role {
	case "call":
		c, err := Dial(context.Background(), path)
		if err == nil {
			err = c.Cancel(context.Background(), "a")
		}
		fmt.Println(err)
	case "serve":
		l, err := net.Listen("unix", path)
		if err == nil {
			err = os.Chmod(path, 0o666)
			defer l.Close()
		}
		fmt.Println(err)
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		return
	}
	os.Exit(0)
}

// asNobody starts the test binary as another user and returns the first line it prints, and how to end it.
func asNobody(t *testing.T, role, path string) (line string, end func()) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("becoming another user takes root, and Linux; run the tests as root")
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t)
	must(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "caller") // which nobody may start where the tests lie
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program)
	c.Dir, c.Env = "/", []string{"CONTROL_TEST_ROLE=" + role + " " + path}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		must(t, in.Close())
		must(t, c.Wait())
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		end()
		t.Fatal(err)
	}
	return strings.TrimSpace(line), end
}

func TestOtherUsersAreRefused(t *testing.T) {
	var log syncbuffer.Buffer
	f := &fake{}
	_, path := serve(t, f, NewBoard(cluster()), slog.New(slog.NewTextHandler(&log, nil)))
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	must(t, os.Chmod(filepath.Dir(path), 0o755))
	line, end := asNobody(t, "call", path)
	end()
	if !strings.Contains(line, "permission denied") {
		t.Errorf("another user opens the socket: %s", line)
	}
	must(t, os.Chmod(path, 0o666)) // by mistake
	line, end = asNobody(t, "call", path)
	end()
	if !strings.Contains(line, "does not answer") || len(f.noted()) > 0 {
		t.Errorf("another user reads %q, and the backend %q", line, f.noted())
	}
	if want := fmt.Sprintf("the other end belongs to user %d, not to user 0", nobody); !strings.Contains(log.String(), want) {
		t.Errorf("the log does not tell: %s", &log)
	}
}

func TestSocketsOfOtherUsersAreRefused(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, SocketName)
	must(t, os.Chmod(dir, 0o777))
	line, end := asNobody(t, "serve", path)
	defer end()
	if line != "<nil>" {
		t.Fatal(line)
	}
	_, err := Dial(t.Context(), path)
	foreign, ok := errors.AsType[*unixsocket.ForeignError](err)
	if !ok || foreign.User != nobody {
		t.Errorf("Dial = %v", err)
	}
}
