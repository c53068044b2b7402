package search_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// How TPE does beside that of Optuna: figures for docs/results, held loosely.
func TestTPEBesideOptuna(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: minutes of Optuna")
	}
	config := optuna(t, strings.Fields(os.Getenv("QUARTET_OPTUNA_ARGUMENTS"))...)
	for _, f := range functions() {
		t.Run(f.name, func(t *testing.T) {
			_, random := compare(t, f, "random", nil, nil)
			ours, distances := compare(t, f, "tpe", nil, random)
			theirs, _ := compare(t, f, "external", config, random)
			beside, _ := compare(t, f, "tpe", nil, nil)
			_ = beside
			_ = distances
			t.Logf("ours %.2f, Optuna's %.2f times the distance of random search", ours.ratio, theirs.ratio)
		})
	}
}
