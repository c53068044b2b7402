package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/internal/pythontest"
	"github.com/quartet-sched/quartet/plugins/scaffold"
)

const checkout = "../.."

func plugin(stage, language string) scaffold.Plugin {
	return scaffold.Plugin{Name: "my-" + stage, Stage: stage, Language: language, Version: "v0.0.0"}
}

// TestGoPluginsPass vets the plugin of every stage as it is written, and runs its test.
func TestGoPluginsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds five plugins")
	}
	for _, stage := range scaffold.Stages {
		t.Run(stage, func(t *testing.T) {
			p := plugin(stage, "go")
			p.Replace = checkout
			dir := filepath.Join(t.TempDir(), "new")
			if _, err := scaffold.New(dir, p); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
				runGo(t, dir, []string{"GOPROXY=off", "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off"}, args...)
			}
			if out, err := exec.Command("gofmt", "-l", dir).Output(); err != nil || len(out) > 0 {
				t.Errorf("gofmt -l: %s, error %v", out, err)
			}
		})
	}
}

// runGo runs the go command in a folder with more variables in its environment, and returns its output.
func runGo(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPythonPluginsPass runs the test of the plugin of every stage.
func TestPythonPluginsPass(t *testing.T) {
	python := pythontest.Require(t)
	sdk, err := filepath.Abs(checkout + "/plugins/python")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1")
	for _, stage := range scaffold.Stages {
		t.Run(stage, func(t *testing.T) {
			p, dir := plugin(stage, "python"), t.TempDir()
			if _, err := scaffold.New(dir, p); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"test_policy.py", p.Script()} { // started by hand, a plugin says what it is
				command := exec.Command(python, file)
				command.Dir, command.Env = dir, env
				out, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", file, err, out)
				}
				if file == p.Script() && !strings.Contains(string(out), stage+"/my_"+stage) {
					t.Errorf("started by hand it says\n%s", out)
				}
			}
			if info, err := os.Stat(filepath.Join(dir, p.Script())); err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("the script is not executable: %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*scaffold.Plugin)
		want   string
	}{
		"name":     {func(p *scaffold.Plugin) { p.Name = "../up" }, `"../up" is not a valid plugin name`},
		"stage":    {func(p *scaffold.Plugin) { p.Stage = "bargaining" }, `no stage "bargaining"`},
		"language": {func(p *scaffold.Plugin) { p.Language = "cobol" }, `no templates for language "cobol"`},
		"checkout": {func(p *scaffold.Plugin) { p.Replace = "." }, "read the checkout"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, dir := plugin("allocation", "go"), filepath.Join(t.TempDir(), "new")
			tc.change(&p)
			if _, err := scaffold.New(dir, p); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the folder was made: %v", err)
			}
		})
	}
}

func TestNewOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "main.go")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.New(dir, plugin("allocation", "go")); err == nil || !strings.Contains(err.Error(), "main.go exists") {
		t.Errorf("error %v, want that main.go exists", err)
	}
	files, _ := os.ReadDir(dir)
	if text, _ := os.ReadFile(mine); string(text) != "mine" || len(files) != 1 {
		t.Errorf("main.go is %q now, beside %d other files", text, len(files)-1)
	}
}
