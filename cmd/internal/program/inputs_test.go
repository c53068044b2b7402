package program

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
)

// command runs a command line; what it prints is its output and its errors.
func command(t *testing.T, args ...string) (printed string, code int) {
	t.Helper()
	var out bytes.Buffer
	code = Run(t.Context(), args, &out, &out, Light())
	return out.String(), code
}

// irregular makes one of each kind of file that is no input, by what is said of it. An attempt to open the pipe would never end, and one
// to read a device whole would end with the memory of the machine.
func irregular(t *testing.T) map[string]string {
	t.Helper()
	if err := errors.Join(syscall.Mkfifo("pipe.yaml", 0o600), os.WriteFile("huge.yaml", nil, 0o600), os.Truncate("huge.yaml", 1<<40)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", "socket.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for _, device := range []string{"zero", "random", "tty"} {
		if err := os.Symlink("/dev/"+device, device+".yaml"); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{
		"pipe.yaml": "it is a pipe", "socket.yaml": "it is a socket", "zero.yaml": "it is a device", "random.yaml": "it is a device", "tty.yaml": "it is a device",
		"huge.yaml": "", // it ends, and says what is wrong first: the size, or what a line holds
	}
}

// withConfigs are the commands with a flag --file, and what else they must be given.
func withConfigs(c *cobra.Command, path []string) (list [][]string) {
	if flag := c.Flag("file"); flag != nil && c.Runnable() {
		line := append(slices.Clone(path), "-f", "FILE")
		switch strings.Join(path, " ") {
		case "trace scale":
			line = append(line, "--load", "0.5")
		case "bench":
			line = append(line, "--scheduler", "fifo,las")
		}
		list = append(list, line)
	}
	for _, sub := range c.Commands() {
		list = append(list, withConfigs(sub, append(slices.Clone(path), sub.Name()))...)
	}
	return list
}

// Every command that reads a file refuses what is no regular file, and says why.
func TestIrregularInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	files := irregular(t)
	if err := os.WriteFile("trace.csv", []byte("submit_s,replicas,duration_s\n0,1,60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := [][]string{
		{"plan", "--policy", "FILE"},
		{"plan", "--jobs", "FILE"},
		{"plan", "--submit", "FILE"},
		{"run", "--jobs", "FILE"},
		{"submit", "FILE"},
		{"submit", "trace.csv", "FILE"},
		{"plugin", "describe", "./FILE"},
		{"plugin", "install", "FILE", "--dir", "installed"},
		{"plugin", "test", "./FILE"},
		{"simulate", "--from", "FILE"},
		{"bench", "FILE"},
		{"bench", "--scheduler", "fifo,FILE"},
		{"bench", "--scheduler", "fifo,las", "--workload", "FILE"},
		{"bench", "merge", "FILE"},
		{"advise", "--candidates", "FILE"},
		{"advise", "--trace", "FILE"},
		{"trace", "nodes", "FILE"},
		{"trace", "generate", "--like", "philly", "--compare", "FILE"},
		{"trace", "calibrate", "--try", "FILE"},
		{"trace", "slice", "--type", "csv", "--set", "path=FILE"},
		{"simulate", "--set", "workload={type: csv, config: {path: FILE}}"},
		{"fill", "--tasks", "FILE", "--nodes", "FILE"},
		{"jobs", "--server", "127.0.0.1:1", "--tls-cert", "FILE", "--tls-key", "FILE", "--tls-ca", "FILE"},
	}
	for _, kind := range []string{"muri", "openb", "philly", "jobs", "shockwave", "tiresias", "blox"} {
		lines = append(lines, []string{"trace", "info", "--type", kind, "--set", "path=FILE"})
	}
	for _, from := range []string{"sacct", "kueue", "kubectl", "swf", "batsim", "philly", "pai", "openb", "acme", "helios", "csv"} {
		lines = append(lines, []string{"trace", "import", "FILE", "--from", from, "--map", "submit_s=a,duration_s=b,replicas=c"})
	}
	root := (&app{&cli.App{Format: render.Text}, Light()}).rootCommand()
	configs := withConfigs(root, nil)
	if len(configs) < 10 {
		t.Fatalf("%d commands take a config: %v", len(configs), configs)
	}
	for _, line := range append(lines, configs...) {
		t.Run(strings.Join(line, " "), func(t *testing.T) {
			for file, want := range files {
				args := slices.Clone(line)
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "FILE", file)
				}
				printed, code := command(t, args...)
				if code == cli.ExitOK || !strings.Contains(printed, want) {
					t.Errorf("%s: exit code %d, want another and %q in\n%s", strings.Join(args, " "), code, want, printed)
				}
			}
		})
	}
}

// What is no regular file among the files of a run is not read by what shows runs.
func TestIrregularFilesOfRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	small := []string{"simulate", "-q", "--set", "workload.config.jobs=3", "--set", "output.write=[jobs,rounds,decisions,timeline,usage]"}
	for _, name := range []string{"a", "b"} {
		if printed, code := command(t, append(small, "--set", "name="+name)...); code != cli.ExitOK {
			t.Fatal(printed)
		}
	}
	entries, err := os.ReadDir(filepath.Join("runs", "a"))
	if err != nil || len(entries) < 6 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			path := filepath.Join("runs", "a", entry.Name())
			if err := errors.Join(os.Rename(path, "kept"), syscall.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := os.Rename("kept", path); err != nil {
					t.Fatal(err)
				}
			}()
			said := false
			for _, args := range [][]string{
				{"report", "runs/a"},
				{"report", "runs/a", "runs/b"},
				{"compare", "runs/a", "runs/b"},
				{"timeline", "runs/a"},
				{"explain", "job-000000", "--run-dir", "runs/a"},
				{"logs", "job-000000", "--run-dir", "runs/a"},
				{"simulate", "--from", "runs/a"},
			} {
				printed, _ := command(t, args...)
				said = said || strings.Contains(printed, "it is a pipe")
			}
			if !said {
				t.Errorf("no command says what %s is", path)
			}
		})
	}
}
