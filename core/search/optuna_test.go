package search_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// optunaVariable names the Python that has Optuna. Tests that need it skip where the variable is not set and no Python has it.
const optunaVariable = "QUARTET_OPTUNA"

// optuna is the config of a search by Optuna, which must be there where it was promised.
func optuna(t *testing.T, arguments ...string) map[string]any {
	t.Helper()
	python, promised := os.LookupEnv(optunaVariable)
	if !promised || python == "" {
		python, promised = "python3", false
	}
	out, err := exec.Command(python, "-c", "import optuna").CombinedOutput()
	if err != nil && promised {
		t.Fatalf("%s: %s has no Optuna: %v\n%s", optunaVariable, python, err, out)
	} else if err != nil {
		t.Skipf("%s has no Optuna; make optuna installs it, and %s names a Python that has it", python, optunaVariable)
	}
	sources, err := filepath.Abs("../../plugins/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", sources)
	command := []any{python, "-m", "quartet_search.optuna"}
	for _, argument := range arguments {
		command = append(command, argument)
	}
	return map[string]any{"command": command}
}

// How TPE does beside that of Optuna: the figures of docs/results/search.md. Each is far closer than random search, on whatever function.
func TestTPEBesideOptuna(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a minute and more of Optuna")
	}
	config := optuna(t)
	for _, f := range functions() {
		t.Run(f.name, func(t *testing.T) {
			_, random := compare(t, f, "random", nil, nil)
			ours, _ := compare(t, f, "tpe", nil, random)
			theirs, _ := compare(t, f, "external", config, random)
			t.Logf("| %s | %.2f | %d | %.2f | %d |", f.name, ours.ratio, ours.wins, theirs.ratio, theirs.wins)
			if theirs.ratio > 0.5 {
				t.Errorf("Optuna's TPE is at %.2f times the distance of random search, want 0.5: is it told what its trials are worth?", theirs.ratio)
			}
		})
	}
}
