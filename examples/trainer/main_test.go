package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asCommand makes the test binary the command, for tests that run it as processes.
const asCommand = "TRAINER_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a command may take.
const patience = 30 * time.Second

type process struct {
	*exec.Cmd
	out bytes.Buffer
}

func command(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, self, args...)}
	p.Env = append(os.Environ(), asCommand+"=1")
	p.Stdout, p.Stderr = &p.out, &p.out
	return p
}

func (p *process) wantExit(t *testing.T, err error, code int) {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := p.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d:\n%s", got, code, &p.out)
	}
}

var lossPattern = regexp.MustCompile(`(?m)^replicas=\d+ done .* loss=(\S+)$`)

// Processes take the very steps that one takes.
func TestReplicasAsProcesses(t *testing.T) {
	losses := make(map[string]string)
	for _, replicas := range []string{"1", "3"} {
		p := command(t, "-replicas", replicas, "-iterations", "100")
		p.wantExit(t, p.Run(), 0)
		match := lossPattern.FindStringSubmatch(p.out.String())
		if match == nil {
			t.Fatalf("no loss in\n%s", &p.out)
		}
		losses[match[1]] = replicas
	}
	if len(losses) != 1 {
		t.Errorf("losses by replicas: %v", losses)
	}
}

// A stopped training makes a checkpoint, says that it is not done, and goes on from there.
func TestStopAndGoOn(t *testing.T) {
	folder := t.TempDir()
	start := func(args ...string) *process {
		p := command(t, append([]string{"-replicas", "2", "-report-every", "1ms", "-checkpoint-every", "0"}, args...)...)
		p.Env = append(p.Env, "QUARTET_CHECKPOINT="+folder)
		return p
	}
	p := start("-iterations", "1e9")
	out, err := p.outPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, out, "step=")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // what else it says does not matter
	p.wantExit(t, p.Wait(), exitStopped)

	p = start("-iterations", "2")
	p.wantExit(t, p.Run(), 0)
	if got := p.out.String(); !strings.Contains(got, "resumed=true") {
		t.Errorf("it began anew:\n%s", got)
	}
}

func (p *process) outPipe() (io.Reader, error) {
	p.Stdout = nil
	return p.StdoutPipe()
}

// waitFor returns what was said up to a text.
func waitFor(t *testing.T, out io.Reader, text string) []byte {
	t.Helper()
	var seen []byte
	chunk := make([]byte, 4096)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := out.Read(chunk)
		seen = append(seen, chunk[:n]...)
		if err != nil {
			t.Fatalf("%v, having said\n%s", err, seen)
		}
	}
	return seen
}

// When one replica dies the others end, and so does the whole.
func TestReplicaDies(t *testing.T) {
	p := command(t, "-replicas", "3", "-iterations", "1e9", "-report-every", "1ms")
	out, err := p.outPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`pid=(\d+)`).FindSubmatch(waitFor(t, out, "step="))
	if match == nil {
		t.Fatal("no process id")
	}
	child, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // likewise
	p.wantExit(t, p.Wait(), exitFailed)
}

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		args []string
		env  map[string]string
		code int
		want string
	}{
		"help":                     {[]string{"-h"}, nil, 0, "Usage of trainer"},
		"an unknown flag":          {[]string{"-what"}, nil, exitUsage, "flag provided but not defined: -what"},
		"several problems":         {[]string{"-model", "tree", "-rate", "0", "rest"}, nil, exitUsage, "\"rest\" is not understood\n-model: \"tree\" is neither softmax nor mlp\n-rate: 0 is not above 0\n"},
		"a profile that is not":    {[]string{"-profile", "none.yaml"}, nil, exitUsage, "-profile: open none.yaml"},
		"two that start replicas":  {[]string{"-replicas", "2"}, map[string]string{"QUARTET_RANK": "0"}, exitUsage, "-replicas: a scheduler started this one"},
		"a wrong environment":      {nil, map[string]string{"QUARTET_REPLICAS": "2"}, exitUsage, "QUARTET_RENDEZVOUS: is not set"},
		"a training that diverges": {[]string{"-rate", "9e5", "-model", "mlp"}, nil, exitFailed, "the training diverged"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			lookup := func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok }
			if code := run(t.Context(), tc.args, lookup, &out, &problems); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if got := problems.String(); !strings.Contains(got, tc.want) {
				t.Errorf("told\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
