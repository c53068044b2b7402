// Package testuser lets a test of the superuser meet files that are closed to it.
package testuser

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

const nobody = 65534

// Ordinary opens files as an ordinary user does until the test ends, where the superuser runs it; the given folder is one
// of TempDir, which the user may enter then. The test keeps its thread: files that other goroutines open are opened as before.
func Ordinary(t testing.TB, folder string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
}
