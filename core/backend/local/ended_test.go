package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What a run that has ended left is set aside when its folder is used again; --fresh alone removes it.
func TestARunThatHasEndedKeepsItsFiles(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		b := opened(t, dir, realClock{}, commands(shell("j", fmt.Sprintf("echo run %d", n))))
		seen(t, b)
		apply(t, b, on(0, 1))
		seen(t, b)
		apply(t, b)
		if _, err := b.Next(t.Context(), onEvents); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for folder, want := range map[string]string{"jobs-1": "run 0\n", "jobs-2": "run 1\n", "jobs": "run 2\n"} {
		text, err := os.ReadFile(filepath.Join(dir, folder, "j", "logs", "0.out"))
		if string(text) != want || err != nil {
			t.Errorf("%s: %q, error %v, want %q", folder, text, err, want)
		}
	}
	fresh, err := tryOpen(dir, "test", true, realClock{}, commands(command("j", "true")))
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "jobs")); !os.IsNotExist(err) {
		t.Errorf("--fresh leaves the jobs: %v", err)
	}
}
