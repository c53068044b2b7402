package inputfile

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// made is a folder with one of each kind of file.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, err := range []error{
		os.WriteFile("regular", []byte("12345678"), 0o600), os.Mkdir("folder", 0o700), syscall.Mkfifo("pipe", 0o600),
		os.WriteFile("huge", nil, 0o600), os.Truncate("huge", 1<<40),
		os.Symlink("regular", "link"), os.Symlink("pipe", "link-to-pipe"), os.Symlink("gone", "dangling"), os.Symlink("loop", "loop"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return dir
}

func TestRead(t *testing.T) {
	dir := made(t)
	for name, tc := range map[string]struct {
		path string
		most int64
		err  string // part of the error; empty for the content of the regular file
	}{
		"regular file":           {"regular", Document, ""},
		"link":                   {"link", Document, ""},
		"as large as may be":     {"regular", 8, ""},
		"a byte larger":          {"regular", 7, "larger than 0 MiB"},
		"sparse file of 1 TiB":   {"huge", Table, "larger than 2048 MiB"},
		"pipe without writer":    {"pipe", Document, "it is a pipe"},
		"link to a pipe":         {"link-to-pipe", Document, "it is a pipe"},
		"socket":                 {"socket", Document, "it is a socket"},
		"folder":                 {"folder", Document, "is a directory"},
		"device without end":     {"/dev/zero", Document, "it is a device"},
		"device that is random":  {"/dev/random", Document, "it is a device"},
		"device that is empty":   {"/dev/null", Document, "it is a device"},
		"no file":                {"gone", Document, "no such file"},
		"link to nowhere":        {"dangling", Document, "no such file"},
		"link to itself":         {"loop", Document, "too many levels"},
		"name that is too long":  {strings.Repeat("x", 300), Document, "file name too long"},
		"file below a file":      {"regular/x", Document, "not a directory"},
		"file of size 0 in proc": {"/proc/self/limits", 8, "larger than 0 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Read(tc.path, tc.most)
			if tc.err == "" {
				if string(text) != "12345678" || err != nil {
					t.Errorf("Read() = %q, %v", text, err)
				}
				return
			}
			if pathError, ok := errors.AsType[*fs.PathError](err); !ok || pathError.Path != tc.path || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("Read() = %v, want an *fs.PathError of %q with %q", err, tc.path, tc.err)
			}
			if strings.HasPrefix(tc.path, "/") || strings.Contains(tc.err, "larger") { // opened, it may be read in part
				return
			}
			if _, err := fs.ReadFile(Folder(dir), tc.path); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("of the folder: %v, want %q", err, tc.err)
			}
		})
	}
	if text, err := Read("/proc/self/limits", Document); err != nil || !bytes.Contains(text, []byte("Max open files")) {
		t.Errorf("a file whose size the system says is 0 has %q, %v", text, err)
	}
}

func TestFolder(t *testing.T) {
	dir := made(t)
	files := Folder(dir)
	if text, err := fs.ReadFile(files, "regular"); string(text) != "12345678" || err != nil {
		t.Errorf("ReadFile() = %q, %v", text, err)
	}
	entries, err := fs.ReadDir(files, ".")
	if len(entries) != 9 || err != nil {
		t.Errorf("ReadDir() = %v, %v", entries, err)
	}
	if _, err := files.Open("../outside"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a path that leaves the folder: %v, want %v", err, fs.ErrInvalid)
	}
}

func TestAll(t *testing.T) {
	if text, err := All(strings.NewReader("12345678"), 8); string(text) != "12345678" || err != nil {
		t.Errorf("All() = %q, %v", text, err)
	}
	if _, err := All(strings.NewReader("12345678"), 7); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("All() of a byte too many = %v", err)
	}
	if _, err := All(iotest.ErrReader(fs.ErrClosed), 7); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("All() = %v, want %v", err, fs.ErrClosed)
	}
	zero, err := os.Open(filepath.Join("/dev", "zero"))
	if err != nil {
		t.Skip("there is no /dev/zero")
	}
	defer zero.Close()
	if _, err := All(zero, 1<<20); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("All() of a stream without end = %v", err)
	}
}
