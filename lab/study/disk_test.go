//go:build linux

package study_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/internal/testdisk"
	"github.com/quartet-sched/quartet/lab/study"
)

// A full disk ends a study with what it is; with room, it goes on.
func TestFullDisk(t *testing.T) {
	whole := t.TempDir()
	execute(t, small, options(whole))
	dir := testdisk.New(t, 96<<10)
	_, err := study.Execute(t.Context(), parse(t, small), options(dir))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want that of a full disk", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m,mode=700"); err != nil {
		t.Fatal(err)
	}
	if r := execute(t, small, options(dir)); r.Reused == 0 || r.Ran == 0 {
		t.Errorf("reused %d, ran %d", r.Reused, r.Ran)
	}
	if diff := cmp.Diff(tables(t, whole), tables(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A folder that cannot be written is told of before anything is run.
func TestReadOnlyFolder(t *testing.T) {
	dir := testdisk.New(t, 1<<20)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=1m,mode=700"); err != nil {
		t.Fatal(err)
	}
	o := options(dir)
	o.Progress = func(int, int) { t.Error("something was run") }
	if _, err := study.Execute(t.Context(), parse(t, small), o); !errors.Is(err, os.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		t.Errorf("error %v, want that of a folder that is read only", err)
	}
}
