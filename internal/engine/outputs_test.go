package engine

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

// A manifest that cannot be written leaves the one before, and nothing beside it.
func TestTheManifestOfARunThatGoesOn(t *testing.T) {
	dir := t.TempDir()
	files, err := newOutputs(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.begin([]byte("first")); err != nil {
		t.Fatal(err)
	}
	begun := files.begun
	if err := os.Remove(begun); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(begun, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := files.begin([]byte("second")); err == nil {
		t.Fatal("what was in the way is gone")
	}
	if files.begun != begun {
		t.Errorf("the manifest is taken to be %s, not %s", files.begun, begun)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("half a manifest is left beside the one before: %v", entries)
	}
}
