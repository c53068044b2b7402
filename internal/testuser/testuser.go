//go:build !linux

package testuser

import (
	"os"
	"testing"
)

func Ordinary(t testing.TB, _ string) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("the superuser opens every file; run the tests as another user")
	}
}
