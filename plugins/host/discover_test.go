package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/plugins/host"
)

func TestFoldersAreSearchedInOrder(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	t.Setenv("XDG_CONFIG_HOME", "/home/me/conf")
	got := host.Folders([]string{"flag", "./both"}, strings.Join([]string{"", "/env", "both"}, string(os.PathListSeparator)), []string{"config", "flag"})
	want := []string{"flag", "both", "/env", "config", "/home/me/conf/quartet/plugins"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
}

func TestFindPrefersEarlierFolders(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	newer := entry("a", "one")
	newer.Version = "v2.0.0"
	writeLock(t, first, newer)
	writeLock(t, second, entry("a", "one"), entry("b", "two"))
	got, err := host.Find([]string{filepath.Join(first, "absent"), first, second})
	if err != nil {
		t.Fatal(err)
	}
	want := []host.Installed{{Entry: newer, Folder: first}, {Entry: entry("b", "two"), Folder: second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestFindTellsTheProblemsOfEveryLock(t *testing.T) {
	var folders []string
	for range 2 {
		folder := t.TempDir()
		folders = append(folders, folder)
		if err := os.WriteFile(filepath.Join(folder, host.LockFile), []byte("version: 9\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := host.Find(folders)
	if err == nil || strings.Count(err.Error(), "unknown version 9") != 2 {
		t.Errorf("error %v, want the problem of both locks", err)
	}
}

func TestStrays(t *testing.T) {
	folder := t.TempDir()
	e := entry("a", "one")
	writeLock(t, folder, e)
	for _, name := range []string{e.Path, "quartet-plugin-stray", "other"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(folder, "quartet-plugin-stray")}
	if diff := cmp.Diff(want, host.Strays([]string{folder})); diff != "" {
		t.Errorf("strays (-want +got):\n%s", diff)
	}
}

func TestVerify(t *testing.T) {
	cases := map[string]struct {
		content   string
		file, dir os.FileMode
		want      string
		missing   bool
	}{
		"as installed":           {"", 0o755, 0o755, "", false},
		"changed":                {"other", 0o755, 0o755, "was installed; run `quartet plugin install` again", false},
		"not executable":         {"", 0o644, 0o755, "is not executable; chmod +x", false},
		"writable by others":     {"", 0o777, 0o755, "can be written by others; chmod go-w", false},
		"folder open to a group": {"", 0o755, 0o775, "the folder", false},
		"gone":                   {"", 0o755, 0o755, "no such file", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := host.Installed{Entry: entry("a", "one"), Folder: t.TempDir()}
			if !tc.missing {
				if err := os.WriteFile(p.File(), []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(p.File(), tc.file); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(p.Folder, tc.dir); err != nil {
				t.Fatal(err)
			}
			err := p.Verify()
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `plugin "a"`)):
				t.Errorf("error %v, want plugin %q and %q in it", err, "a", tc.want)
			}
			if _, err := p.Binary().Start(t.Context()); tc.want != "" && err == nil {
				t.Error("it was started")
			}
		})
	}
}

// What is recorded as the hash of a plugin is one.
func TestARecordedHashIsAHash(t *testing.T) {
	for _, recorded := range []string{"ab", strings.Repeat("x", 64), strings.Repeat("a", 63), strings.Repeat("a", 66)} {
		b := host.Binary{Name: "faulty", Path: program(t, 0o700, "true"), SHA256: recorded}
		if _, err := b.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "is no hash") {
			t.Errorf("%q: error %v, want that it is no hash", recorded, err)
		}
	}
}

func TestRemove(t *testing.T) {
	folder := t.TempDir()
	a := host.Installed{Entry: entry("a", "one"), Folder: folder}
	writeLock(t, folder, a.Entry, entry("b", "two"))
	if err := os.WriteFile(a.File(), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := host.Remove(folder, "a"); err != nil {
		t.Fatal(err)
	}
	left, err := host.Find([]string{folder})
	if err != nil || len(left) != 1 || left[0].Name != "b" {
		t.Errorf("left %v, error %v; want b alone", left, err)
	}
	if _, err := os.Stat(a.File()); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if err := host.Remove(folder, "a"); err == nil || !strings.Contains(err.Error(), `no plugin "a"`) {
		t.Errorf("error %v, want that there is no such plugin", err)
	}
}

// What is found in one folder is not lost to the problems of another one, whatever they are.
func TestFindGoesOnPastAProblem(t *testing.T) {
	unreadable, wrong, good := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(unreadable, host.LockFile), 0o700); err != nil {
		t.Fatal(err)
	}
	bad := entry("bad", "two")
	bad.Version = "latest"
	writeLock(t, wrong, bad)
	writeLock(t, good, entry("a", "one"))
	found, err := host.Find([]string{unreadable, wrong, good})
	if diff := cmp.Diff([]host.Installed{{Entry: entry("a", "one"), Folder: good}}, found); diff != "" {
		t.Errorf("found -want +got:\n%s", diff)
	}
	for _, want := range []string{unreadable + ": read the lock: ", `"latest" is no version`, "do not edit the lock by hand"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// A lock vouches for what is started: one that others write is not read.
func TestALockThatOthersWrite(t *testing.T) {
	folder := t.TempDir()
	writeLock(t, folder, entry("a", "one"))
	if err := os.Chmod(filepath.Join(folder, host.LockFile), 0o666); err != nil {
		t.Fatal(err)
	}
	if lock, err := host.ReadLock(folder); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("%v, error %v", lock, err)
	}
}

// The text of a lock is what it was: people compare it.
func TestTheTextOfALock(t *testing.T) {
	folder := t.TempDir()
	writeLock(t, folder, entry("a", "one"))
	got, err := os.ReadFile(filepath.Join(folder, host.LockFile))
	if err != nil {
		t.Fatal(err)
	}
	want := `# The plugins of this folder that Quartet may start. Written by ` + "`quartet plugin install`" + `; do not edit.
version: 1
plugins:
  - name: a
    version: v1.2.0
    path: quartet-plugin-a
    protocol: 1
    sha256: ` + sum + `
    components:
      - stage: allocation
        type: one
        summary: 'does: it'
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
