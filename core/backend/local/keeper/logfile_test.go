package keeper

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLogFilesRotate(t *testing.T) {
	cases := map[string]struct {
		bytes  int64
		older  int
		there  string // before
		writes []string
		want   map[string]string
	}{
		"no limit":             {0, 3, "", []string{"aaaa\n", "bbbb\n"}, map[string]string{"0.out": "aaaa\nbbbb\n"}},
		"nothing written":      {8, 3, "", nil, map[string]string{"0.out": ""}},
		"room for all":         {10, 3, "", []string{"aaaa\n", "bbbb\n"}, map[string]string{"0.out": "aaaa\nbbbb\n"}},
		"at the end of a line": {8, 3, "", []string{"aaaa\nbbbb\n"}, map[string]string{"0.out.1": "aaaa\n", "0.out": "bbbb\n"}},
		"a line too long":      {4, 3, "", []string{"abcdefghij\n"}, map[string]string{"0.out.2": "abcd", "0.out.1": "efgh", "0.out": "ij\n"}},
		"the oldest goes":      {4, 2, "", []string{"aaa\n", "bbb\n", "ccc\n", "ddd\n"}, map[string]string{"0.out.2": "bbb\n", "0.out.1": "ccc\n", "0.out": "ddd\n"}},
		"none is kept":         {4, 0, "", []string{"aaa\n", "bbb\n"}, map[string]string{"0.out": "bbb\n"}},
		"of a run before":      {8, 1, "aaaa\n", []string{"bbbb\n"}, map[string]string{"0.out.1": "aaaa\n", "0.out": "bbbb\n"}},
		"of a larger limit":    {4, 1, "aaaaaa\n", []string{"b\n"}, map[string]string{"0.out.1": "aaaaaa\n", "0.out": "b\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "0.out")
			if tc.there != "" {
				if err := os.WriteFile(path, []byte(tc.there), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var notes bytes.Buffer
			l := newLogFile(path, tc.bytes, tc.older, &notes)
			for _, text := range tc.writes {
				if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
					t.Fatalf("wrote %d: %v", n, err)
				}
			}
			if warning := l.end() + notes.String(); warning != "" {
				t.Errorf("warned of %q", warning)
			}
			if diff := cmp.Diff(tc.want, filesIn(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// filesIn is the text of all files of a folder, which must be private.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[entry.Name()] = string(text)
	}
	return texts
}

// Whatever is written, the files hold the end of it byte for byte, and none is too large.
func TestLogFilesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "logs")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		limit, older := rapid.Int64Range(1, 40).Draw(t, "bytes"), rapid.IntRange(0, 5).Draw(t, "older")
		path := filepath.Join(dir, "0.out")
		l := newLogFile(path, limit, older, os.Stderr)
		var all []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOf(rapid.SampledFrom([]byte("\n\n\x00abc")))).Draw(t, "chunks") {
			all = append(all, chunk...)
			_, _ = l.Write(chunk) // it never fails
		}
		if warning := l.end(); warning != "" {
			t.Fatal(warning)
		}
		var kept []byte
		files := 0
		for n := older; n >= 0; n-- {
			text, err := os.ReadFile(l.name(n))
			if err != nil {
				continue
			}
			files++
			if int64(len(text)) > limit {
				t.Errorf("%s has %d bytes, more than %d", l.name(n), len(text), limit)
			}
			kept = append(kept, text...)
		}
		if !bytes.HasSuffix(all, kept) || files <= older && len(kept) < len(all) {
			t.Errorf("wrote %q, %d files hold %q", all, files, kept)
		}
	})
}

func TestLogFilesDropWhatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	var notes bytes.Buffer
	l := newLogFile(filepath.Join(dir, "0.out"), 4, 1, &notes)
	write := func(text string) {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("wrote %d of %q: %v", n, text, err)
		}
	}
	write("abc")
	write("de")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write("fg\n")
	if err := os.Remove(l.path); err != nil { // by its owner
		t.Fatal(err)
	}
	write("hi\njk\n")
	if want := "0.out: output is dropped: "; strings.Count(notes.String(), want) != 1 {
		t.Errorf("notes %q, want %q once", notes.String(), want)
	}
	if got, want := l.end(), "0.out: 5 bytes of output were dropped"; got != want {
		t.Errorf("warned of %q, want %q", got, want)
	}
	if diff := cmp.Diff(map[string]string{"0.out": "jk\n", "0.out.1": "hi\n"}, filesIn(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
