package doctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without Node.js `make node` does not pass for a test that ran: it says what is missing.
func TestMakeNodeSaysThatItIsSkipped(t *testing.T) {
	tools := t.TempDir()
	for _, tool := range []string{"make", "bash"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("there is no %s in PATH; install it", tool)
		}
		if err := os.Symlink(path, filepath.Join(tools, tool)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(filepath.Join(tools, "make"), "node")
	command.Dir = root
	command.Env = []string{"PATH=" + tools}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "make node: SKIPPED: not found: node npm; ") {
		t.Errorf("the last line is %q", last)
	}
}

// The same of `make torch` where there is no Python with torch.
func TestMakeTorchSaysThatItIsSkipped(t *testing.T) {
	for name, python := range map[string]string{"missing": "/no/such/python3", "not a Python": "false"} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command("make", "--no-print-directory", "torch", "QUARTET_TORCH="+python)
			command.Dir = root
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !strings.HasPrefix(string(out), "make torch: SKIPPED: "+python+" has no torch or no pytest; ") {
				t.Errorf("it says %q", out)
			}
		})
	}
}
