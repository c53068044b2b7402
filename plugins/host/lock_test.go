package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/plugins/host"
)

const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of nothing

func entry(name, component string) host.Entry {
	return host.Entry{
		Name: name, Version: "v1.2.0", Path: "quartet-plugin-" + name, Protocol: 1, SHA256: sum,
		Components: []host.LockedComponent{{Stage: "allocation", Type: component, Summary: "does: it"}},
	}
}

func writeLock(t *testing.T, folder string, entries ...host.Entry) {
	t.Helper()
	lock := host.Lock{Version: 1, Plugins: entries}
	if err := lock.Write(folder); err != nil {
		t.Fatal(err)
	}
}

func TestLockSurvivesWriting(t *testing.T) {
	folder := t.TempDir()
	writeLock(t, folder, entry("second", "b"), entry("first", "a"))
	got, err := host.ReadLock(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := host.Lock{Version: 1, Plugins: []host.Entry{entry("first", "a"), entry("second", "b")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lock (-want +got):\n%s", diff)
	}
	if files, _ := os.ReadDir(folder); len(files) != 1 {
		t.Errorf("%d files in the folder, want the lock alone", len(files))
	}
}

func TestNoLockIsEmpty(t *testing.T) {
	if lock, err := host.ReadLock(filepath.Join(t.TempDir(), "absent")); err != nil || len(lock.Plugins) != 0 {
		t.Errorf("got %v, error %v; want an empty lock", lock, err)
	}
}

func TestLockProblems(t *testing.T) {
	good := `{name: a, version: v1.0.0, path: p, protocol: 1, sha256: ` + sum + `, components: [{stage: allocation, type: t}]}`
	cases := map[string]struct{ text, want string }{
		"unknown key":     {"version: 1\nplugins: []\ntrusted: true\n", ":3:1: trusted: unknown key"},
		"another version": {"version: 2\n", ":1:1: version: unknown version 2; this program reads version 1"},
		"no hash":         {"version: 1\nplugins:\n- " + strings.Replace(good, sum, "abc", 1), `:3:`},
		"short hash":      {"version: 1\nplugins:\n- " + strings.Replace(good, sum, "abcd", 1), `plugins[0].sha256: "abcd" is no sha256 in hex`},
		"missing":         {"version: 1\nplugins:\n- name: a\n", "plugins[0].sha256: required but missing"},
		"two names":       {"version: 1\nplugins:\n- " + good + "\n- " + good, `:4:4: plugins[1].name: there are two plugins "a"`},
		"taken":           {"version: 1\nplugins:\n- " + good + "\n- " + strings.Replace(good, "name: a", "name: b", 1), `"allocation/t" is also a component of plugin "a"`},
		"path upwards":    {"version: 1\nplugins:\n- " + strings.Replace(good, "path: p", "path: ../p", 1), `:3:30: plugins[0].path: "../p" leaves the folder of the lock`},
		"absolute path":   {"version: 1\nplugins:\n- " + strings.Replace(good, "path: p", "path: /bin/sh", 1), `"/bin/sh" leaves the folder of the lock`},
		"bad stage":       {"version: 1\nplugins:\n- " + strings.Replace(good, "allocation", "alloc", 1), `unknown stage "alloc"`},
		"bad type":        {"version: 1\nplugins:\n- " + strings.Replace(good, "type: t", "type: ../x", 1), `"../x" is no type of a component`},
		"bad name":        {"version: 1\nplugins:\n- " + strings.Replace(good, "name: a", "name: A_b", 1), `"A_b" is no name of a plugin`},
		"no components":   {"version: 1\nplugins:\n- " + strings.Replace(good, "{stage: allocation, type: t}", "", 1), `plugin "a" holds no components`},
		"not YAML":        {"version: [", "cannot read YAML"},
		"not a mapping":   {"- 1\n", "cannot read YAML"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, host.LockFile), []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := host.ReadLock(folder)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), host.LockFile) {
				t.Errorf("error\n%v\nwant %q in it", err, tc.want)
			}
		})
	}
}
