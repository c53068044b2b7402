package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
)

func nothing(string) bool { return false }

// toInstall is a file of the plugin that has a name, in a version. A comment makes it another file.
func toInstall(t *testing.T, version, comment string) host.Binary {
	t.Helper()
	return host.Binary{Name: "to install", Path: program(t, 0o700, "# "+comment, "exec '"+os.Args[0]+"' "+serveNamed+" "+version)}
}

func filesIn(t *testing.T, folder string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range entries {
		files = append(files, file.Name())
	}
	return files
}

// An installed plugin is a file and an entry in the lock of its folder, in place of those of its name before it.
func TestInstall(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "plugins")
	fileOf := func(version string) string {
		return "quartet-plugin-named_" + version + "_x1_" + runtime.GOOS + "_" + runtime.GOARCH
	}
	other := entry("another", "component")
	for _, step := range []struct {
		version, comment string
		files            []string
	}{
		{"v1.0.0", "first", []string{host.LockFile, fileOf("v1.0.0")}},
		{"v1.0.0", "built again", []string{host.LockFile, fileOf("v1.0.0")}},
		{"v1.1.0", "next", []string{host.LockFile, fileOf("v1.1.0")}},
		{"v0.9.0", "back", []string{host.LockFile, other.Path, fileOf("v0.9.0")}},
	} {
		if step.comment == "back" { // and now with a plugin beside it
			lock, err := host.ReadLock(folder)
			if err != nil {
				t.Fatal(err)
			}
			writeLock(t, folder, append(lock.Plugins, other)...)
			if err := os.WriteFile(filepath.Join(folder, other.Path), nil, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		b := toInstall(t, step.version, step.comment)
		got, err := host.Install(t.Context(), b, folder, nothing)
		if err != nil {
			t.Fatalf("%s: %v", step.comment, err)
		}
		sum, err := host.HashFile(b.Path)
		if err != nil {
			t.Fatal(err)
		}
		want := host.Installed{Folder: folder, Entry: host.Entry{
			Name: "named", Version: step.version, Path: fileOf(step.version), Protocol: 1, SHA256: sum,
			Components: []host.LockedComponent{
				{Stage: "allocation", Type: "named", Summary: "grants"}, {Stage: "placement", Type: "named", Summary: "seats"},
			},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.comment, diff)
		}
		found := []host.Installed{want}
		if step.comment == "back" {
			found = []host.Installed{{Entry: other, Folder: folder}, want}
		}
		all, err := host.Find([]string{folder})
		if diff := cmp.Diff(found, all); err != nil || diff != "" {
			t.Errorf("%s: error %v, found -want +got:\n%s", step.comment, err, diff)
		}
		if diff := cmp.Diff(step.files, filesIn(t, folder)); diff != "" {
			t.Errorf("%s: files -want +got:\n%s", step.comment, diff)
		}
		if err := got.Verify(); err != nil {
			t.Errorf("%s: %v", step.comment, err)
		}
	}
}

// What cannot be installed leaves the folder as it was.
func TestInstallRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		binary   func(*testing.T) host.Binary
		prepare  func(t *testing.T, folder string)
		reserved func(string) bool
		want     string
		file     bool // the problem names the file that was to be installed
	}{
		"no file": {
			binary: func(*testing.T) host.Binary { return host.Binary{Path: "no/such/file"} }, want: "install plugin: stat no/such/file",
		},
		"no plugin": {
			binary: func(t *testing.T) host.Binary { return host.Binary{Path: program(t, 0o700, "exit 3")} }, want: "it is not a plugin",
		},
		"a lock that cannot be read": {prepare: func(t *testing.T, folder string) {
			if err := os.WriteFile(filepath.Join(folder, host.LockFile), []byte("version: 9\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, want: "unknown version 9"},
		"a built-in": {
			reserved: func(id string) bool { return id == "placement/named" }, file: true,
			want: `"placement/named" is built in, and a plugin cannot replace it; give the component a type of its own`,
		},
		"a component of another plugin": {prepare: func(t *testing.T, folder string) {
			writeLock(t, folder, entry("another", "named"))
		}, want: `"allocation/named" is also a component of plugin "another"`, file: true},
		"a folder that others write": {prepare: func(t *testing.T, folder string) {
			if err := os.Chmod(folder, 0o777); err != nil {
				t.Fatal(err)
			}
		}, want: "can be written by others"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if tc.prepare != nil {
				tc.prepare(t, folder)
			}
			before := filesIn(t, folder)
			b := toInstall(t, "v1.0.0", name)
			if tc.binary != nil {
				b = tc.binary(t)
			}
			reserved := tc.reserved
			if reserved == nil {
				reserved = nothing
			}
			got, err := host.Install(t.Context(), b, folder, reserved)
			if err == nil || !strings.Contains(err.Error(), tc.want) || got.Name != "" {
				t.Errorf("%+v, error %v; want %q", got, err, tc.want)
			}
			var problems core.Diagnostics
			if named := errors.As(err, &problems) && problems[0].Position.File == b.Path; named != tc.file {
				t.Errorf("error %v: names the file: %v, want %v", err, named, tc.file)
			}
			if diff := cmp.Diff(before, filesIn(t, folder)); diff != "" {
				t.Errorf("files in the folder -before +after:\n%s", diff)
			}
		})
	}
}

func TestInstallWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Install(t.Context(), toInstall(t, "v1.0.0", ""), filepath.Join(file, "plugins"), nothing); err == nil {
		t.Error("it is installed in a file")
	}
}

func TestRemoveWhereNothingCanBeRead(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, host.LockFile), []byte("version: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := host.Remove(folder, "a"); err == nil || !strings.Contains(err.Error(), "unknown version 9") {
		t.Errorf("error %v", err)
	}
	writeLock(t, folder, entry("a", "one")) // of a file that is gone
	if err := host.Remove(folder, "a"); err != nil {
		t.Error(err)
	}
}
