package quartet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutputsLeaveNothingHalfDone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil { // a folder with nothing in it goes
		t.Fatal(err)
	}
	files, err := newOutputs(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.write("jobs.csv", []byte("half")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "jobs.csv")); err == nil {
		t.Error("jobs.csv exists before commit")
	}
	files.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("temporary file %q is left", e.Name())
		}
	}
}
