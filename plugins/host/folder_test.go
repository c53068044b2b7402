package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/plugins/wire"
)

// Folders of sockets are made where their paths are short enough.
func TestWhereFoldersAreMade(t *testing.T) {
	for name, tc := range map[string]struct{ usual, want string }{
		"the usual one": {"/var/tmp", "/var/tmp"},
		"the longest":   {"/" + strings.Repeat("x", longestTemporary-1), "/" + strings.Repeat("x", longestTemporary-1)},
		"too long":      {"/" + strings.Repeat("x", longestTemporary), "/tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", tc.usual)
			if got := temporary(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// inFolder makes the folder for temporary files one of the test's own, and returns it.
func inFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("TMPDIR", folder)
	return folder
}

// A folder holds a lock as long as its host lives, and is gone with it.
func TestAFolderOfASocket(t *testing.T) {
	temporary := inFolder(t)
	left := filepath.Join(temporary, wire.SocketFolder+"dead")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, lockName), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := newSocketFolder()
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(f.path) != temporary || !strings.HasPrefix(filepath.Base(f.path), wire.SocketFolder) {
		t.Errorf("it is %s", f.path)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a host left behind is still there: %v", err)
	}
	held, err := filepath.Glob(filepath.Join(f.path, "*"))
	if diff := cmp.Diff([]string{filepath.Join(f.path, lockName)}, held); err != nil || diff != "" {
		t.Errorf("files -want +got:\n%s", diff)
	}
	sweepFolders()
	if _, err := os.Stat(f.path); err != nil {
		t.Errorf("the folder of a host that lives was removed: %v", err)
	}
	f.remove()
	if _, err := os.Stat(f.path); !os.IsNotExist(err) || f.lock.Close() == nil {
		t.Errorf("something is left of it: %v", err)
	}
}

// What another host holds, what is not ours and what cannot be opened stays.
func TestSweepFolders(t *testing.T) {
	temporary := inFolder(t)
	folder := func(name string, lock bool) string {
		path := filepath.Join(temporary, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if lock {
			if err := os.WriteFile(filepath.Join(path, lockName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	cannot := folder(wire.SocketFolder+"1", false) // looked at before the others
	if err := os.Mkdir(filepath.Join(cannot, lockName), 0o700); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		folder(wire.SocketFolder+"dead", true): false, folder(wire.SocketFolder+"unready", false): true,
		folder("other", true): true, cannot: true,
	}
	live := folder(wire.SocketFolder+"live", true)
	lock, err := os.Open(filepath.Join(live, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	want[live] = true
	sweepFolders()
	got := map[string]bool{}
	for path := range want {
		_, err := os.Stat(path)
		got[path] = err == nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folders that are there -want +got:\n%s", diff)
	}
}

func TestNoFolderOfASocket(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(inFolder(t), "absent"))
	if f, err := newSocketFolder(); err == nil {
		f.remove()
		t.Errorf("it is %s", f.path)
	}
}

func TestReplaceFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	for _, text := range []string{"one", "two"} {
		if err := replaceFile(path, strings.NewReader(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%q, error %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, error %v", info.Mode(), err)
	}
	if err := replaceFile(path, failing{}, 0o640); err == nil {
		t.Error("half a file took its place")
	}
	if err := replaceFile(filepath.Join(folder, "no", "file"), strings.NewReader(""), 0o640); err == nil {
		t.Error("there is no such folder")
	}
	got, err := os.ReadFile(path)
	if left, _ := os.ReadDir(folder); err != nil || string(got) != "two" || len(left) != 1 {
		t.Errorf("%q is left, %d files", got, len(left))
	}
}

// failing is a stream that breaks off.
type failing struct{}

func (failing) Read(p []byte) (int, error) { return copy(p, "half"), os.ErrDeadlineExceeded }
