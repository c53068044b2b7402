//go:build linux

// Package testdisk makes disks for tests that fill them.
package testdisk

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// New makes a folder with room for so many bytes. The test is skipped where that is not permitted.
func New(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", bytes)); err != nil {
		t.Skipf("mounting a tmpfs is not permitted: %v; run the tests as root with CAP_SYS_ADMIN", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Filling is the file with which Fill fills a disk: to remove it makes room.
const Filling = "fill"

// Fill leaves so many bytes of a disk free.
func Fill(t *testing.T, dir string, bytes int) {
	t.Helper()
	left, err := os.Create(filepath.Join(dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if _, err := left.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, Filling))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); err == nil {
		t.Fatal("the disk is endless")
	}
	if err := os.Remove(left.Name()); err != nil {
		t.Fatal(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
