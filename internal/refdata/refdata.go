// Package refdata finds the published data that tests compare with, and that is not ours to give away.
package refdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Variable names the folder that holds data/ and reference/.
const Variable = "QUARTET_DATA"

// Path is a file or folder of the published data. A test is skipped where Variable is not set, and fails where it names a
// folder that lacks the data: what was meant to run is not left out in silence.
func Path(t testing.TB, elements ...string) string {
	t.Helper()
	root := os.Getenv(Variable)
	if root == "" {
		t.Skip(Variable + " is not set: it names the folder that holds data/ and reference/")
	}
	path := filepath.Join(append([]string{root}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is set, but there is no published data: %v", Variable, err)
	}
	return path
}
