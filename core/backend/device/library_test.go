//go:build cgo && linux && nvml

package device

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// libraryVariable names, to a process of its own, the library that it asks: a process knows one for all its life.
const libraryVariable = "QUARTET_TEST_LIBRARY"

// A library as the driver has it is loaded and called, also one that lacks what newer ones have.
func TestLibrary(t *testing.T) {
	if path := os.Getenv(libraryVariable); path != "" {
		got, err := library(path).list(context.Background())
		first := Device{Index: 0, UUID: "GPU-11111111-2222-3333-4444-000000000000", Model: "NVIDIA A100-SXM4-40GB", MemoryMiB: 40960}
		second := first
		second.Index, second.UUID, second.MIG = 1, "GPU-11111111-2222-3333-4444-000000000001", filepath.Base(path) == "new.so"
		want := []Device{first, second}
		if second.MIG {
			want = append(want, Device{Index: 1, UUID: "MIG-11111111-2222-3333-4444-000000000002", Model: first.Model, MemoryMiB: 19968, Profile: "3g.20gb", Instance: 1})
		}
		compare(t, got, err, want, "")
		return
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler (cc); install gcc or clang")
	}
	for name, options := range map[string][]string{"new": nil, "old": {"-DOLD"}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name+".so")
			options = append(options, "-shared", "-fPIC", "-o", path, "testdata/library.c")
			if out, err := exec.Command(compiler, options...).CombinedOutput(); err != nil {
				t.Skipf("the C compiler does not make libraries: %v\n%s", err, out)
			}
			again := exec.Command(os.Args[0], "-test.run=^TestLibrary$")
			again.Env = append(os.Environ(), libraryVariable+"="+path)
			if out, err := again.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
