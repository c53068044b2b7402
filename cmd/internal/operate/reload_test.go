package operate

import (
	"os"
	"path/filepath"
	"testing"
)

// Files are read again when they changed and have come to rest, however they are written.
func TestFilesAreFollowed(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	type step struct {
		do   func(t *testing.T, path string)
		want bool // changed, at the look after it
	}
	rest := func(*testing.T, string) {}
	to := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path, text) }
	}
	for name, steps := range map[string][]step{
		"nothing":   {{rest, false}, {to("old"), false}, {rest, false}},
		"at once":   {{to("new"), false}, {rest, true}, {rest, false}},
		"in pieces": {{to("n"), false}, {to("ne"), false}, {to("new"), false}, {rest, true}, {rest, false}},
		"back":      {{to("new"), false}, {to("old"), false}, {rest, false}},
		"renamed": {{func(t *testing.T, path string) {
			write(t, path+"~", "new")
			if err := os.Rename(path+"~", path); err != nil {
				t.Fatal(err)
			}
		}, false}, {rest, true}, {rest, false}},
		"gone for a moment": {{remove, false}, {rest, false}, {to("new"), false}, {rest, true}, {rest, false}},
		"gone and back":     {{remove, false}, {rest, false}, {to("old"), false}, {rest, false}},
		"a link": {{func(t *testing.T, path string) {
			remove(t, path)
			write(t, path+"-2", "new")
			if err := os.Symlink(path+"-2", path); err != nil {
				t.Fatal(err)
			}
		}, false}, {rest, true}},
		"twice": {{to("new"), false}, {rest, true}, {to("newer"), false}, {rest, true}, {rest, false}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
			write(t, path, "old")
			write(t, other, "other")
			f := followFiles([]string{path, other, "default.yaml", "-"})
			for i, s := range steps {
				s.do(t, path)
				got := f.changed()
				if got != s.want {
					t.Errorf("look %d: changed %t, want %t", i, got, s.want)
				}
				if !got {
					continue
				}
				if err := f.read(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A file that is gone when it is to be read is told of.
func TestAFileThatIsGoneIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "default.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := followFiles([]string{path})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.read(); err == nil || err.Error() != path+" is gone, or cannot be read" {
		t.Error(err)
	}
}
