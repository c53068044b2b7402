package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// program writes an executable script and returns its path.
func program(t *testing.T, mode os.FileMode, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "faulty")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// installed is a binary as the lock file has it.
func installed(t *testing.T, path string) host.Binary {
	t.Helper()
	sum, err := host.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return host.Binary{Name: "faulty", Path: path, SHA256: sum}
}

func TestAStartThatFailsIsTold(t *testing.T) {
	messages := openGolden(t, "starts")
	allocation := host.Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "faulty", ID: "allocation/faulty"}
	for name, tc := range map[string]struct {
		binary    func(*testing.T) host.Binary
		component host.Component
	}{
		"missing":             {binary: func(*testing.T) host.Binary { return host.Binary{Name: "faulty", Path: "no/such/file"} }},
		"a folder":            {binary: func(t *testing.T) host.Binary { return host.Binary{Name: "faulty", Path: t.TempDir()} }},
		"not executable":      {binary: func(t *testing.T) host.Binary { return host.Binary{Name: "faulty", Path: program(t, 0o600, "true")} }},
		"no program":          {binary: func(t *testing.T) host.Binary { return host.Binary{Name: "faulty", Path: noProgram(t)} }},
		"world-writable file": {binary: func(t *testing.T) host.Binary { return installed(t, program(t, 0o777, "true")) }},
		"world-writable folder": {binary: func(t *testing.T) host.Binary {
			path := program(t, 0o700, "true")
			if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			return installed(t, path)
		}},
		"another hash": {binary: func(t *testing.T) host.Binary {
			b := installed(t, program(t, 0o700, "true"))
			b.SHA256 = strings.Repeat("0", 64)
			return b
		}},
		"ends at once": {binary: func(t *testing.T) host.Binary { return host.Binary{Name: "faulty", Path: program(t, 0o700, "exit 0")} }},
		"ends in words": {binary: func(t *testing.T) host.Binary {
			return host.Binary{Name: "faulty", Path: program(t, 0o700, "echo no licence >&2; exit 4")}
		}},
		"lacks a module":            {binary: lacking("numpy.linalg")},
		"lacks one by another name": {binary: lacking("google.protobuf")},
		"lacks the SDK":             {binary: lacking("quartet_plugin")},
		"prints noise": {binary: func(t *testing.T) host.Binary {
			return host.Binary{Name: "faulty", Path: program(t, 0o700, "echo hello; exec sleep 60")}
		}},
		"prints before": {binary: func(*testing.T) host.Binary { return faultyBinary(printFirst) }},
		"other protocol": {binary: func(t *testing.T) host.Binary {
			return host.Binary{Name: "faulty", Path: program(t, 0o700, "echo '1|7|unix|/nowhere|grpc|'; exec sleep 60")}
		}},
		"never ready": {binary: func(t *testing.T) host.Binary {
			return host.Binary{Name: "faulty", Path: program(t, 0o700, "exec sleep 60"), StartTimeout: 200 * time.Millisecond}
		}},
		"other stage": {
			binary:    func(*testing.T) host.Binary { return faultyBinary(serveFaulty) },
			component: host.Component{Stage: stagev1.Stage_STAGE_PLACEMENT, Type: "other", ID: "placement/other"},
		},
		"bad settings": {
			binary: func(*testing.T) host.Binary { return faultyBinary(serveFaulty) },
			component: host.Component{
				Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "faulty", ID: "allocation/faulty", Config: map[string]any{"fautl": "exit"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			component := tc.component
			if component.ID == "" {
				component = allocation
			}
			b := tc.binary(t)
			session, err := b.Session(t.Context(), component)
			if err == nil {
				session.Close()
				t.Fatal("it started")
			}
			plain := strings.NewReplacer(b.Path, "PATH", filepath.Dir(b.Path), "FOLDER").Replace(err.Error())
			if b.SHA256 != "" {
				if sum, err := host.HashFile(b.Path); err == nil {
					plain = strings.ReplaceAll(plain, sum, "HASH")
				}
			}
			messages.compare(t, name, errors.New(plain))
		})
	}
}

// lacking is a plugin that ends as one in Python without a module does.
func lacking(module string) func(*testing.T) host.Binary {
	return func(t *testing.T) host.Binary {
		return host.Binary{Name: "faulty", Path: program(t, 0o700,
			"echo 'Traceback (most recent call last):' >&2", `echo "ModuleNotFoundError: No module named '`+module+`'" >&2`, "exit 1",
		)}
	}
}

// noProgram is an executable file that no system can execute.
func noProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "faulty")
	if err := os.WriteFile(path, []byte{0, 1, 2, 3}, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
