package operate_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// firstWrite closes a channel when something is first written.
type firstWrite struct {
	bytes.Buffer
	begun chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.Len() == 0 {
		close(w.begun)
	}
	return w.Buffer.Write(p)
}

// Who follows the last job of a run reads all of its output, though the scheduler ends with it.
func TestFollowingTheLastJobToItsEnd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend is for Linux; run the tests there")
	}
	dir, err := os.MkdirTemp("", "follow") // the folder of a test may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Chdir(dir)
	const jobs = `version: 1
jobs: [{name: talk, command: [sh, -c, "echo begun; while [ ! -e go ]; do sleep 0.02; done; seq 20000"]}]
`
	if err := os.WriteFile("jobs.yaml", []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	ran, followed := make(chan int, 1), make(chan int, 1)
	var runErrors, errs bytes.Buffer
	go func() {
		ran <- run(t.Context(), []string{"run", "--jobs", "jobs.yaml", "--metrics", "off", "-q"}, io.Discard, &runErrors)
	}()
	out := &firstWrite{begun: make(chan struct{})}
	go func() { followed <- run(t.Context(), []string{"logs", "-f", "talk", "--wait", "1m"}, out, &errs) }()
	select {
	case <-out.begun:
	case <-followed:
		t.Fatalf("the follower ended: %s", &errs)
	}
	if err := os.WriteFile("go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-ran; code != 0 {
		t.Errorf("run: exit code %d: %s", code, &runErrors)
	}
	if code := <-followed; code != 0 {
		t.Errorf("logs: exit code %d: %s", code, &errs)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 20001 {
		t.Errorf("%d lines, want 20001", lines)
	}

	code, stdout, stderr := invoke(t, "logs", "talk", "--run-dir", filepath.Join("runs", "local"))
	if code != 0 || stdout != out.String() {
		t.Errorf("exit code %d, %d bytes of %d: %s", code, len(stdout), out.Len(), stderr)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no job":     {[]string{"logs", "tlak", "--run-dir", "runs/local"}, "there is no job \"tlak\"; did you mean \"talk\"?\n"},
		"no run":     {[]string{"logs", "talk", "--run-dir", "runs"}, "runs/live/jobs: no such folder; a run on real machines makes it\n"},
		"upwards":    {[]string{"logs", "..", "--run-dir", "runs/local"}, "there is no job \"..\"\n"},
		"no replica": {[]string{"logs", "talk", "--rank", "1", "--run-dir", "runs/local"}, "error: replica 1 of job talk has not written any output\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, stderr := invoke(t, tc.args...)
			if diff := cmp.Diff(tc.want, stderr); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
