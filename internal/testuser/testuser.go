//go:build !linux

package testuser

import (
	"os"
	"testing"
)

// Ordinary skips the test where the superuser runs it, who opens every file: this system cannot open files as another user.
func Ordinary(t testing.TB, _ string) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("the superuser opens every file; run the tests as another user")
	}
}
