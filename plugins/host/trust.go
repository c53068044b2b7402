package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// verify refuses a file that cannot be started and, of an installed plugin, one that is not what was installed or that
// others could replace.
func (b Binary) verify() error {
	if err := checkExecutable(b.Path); err != nil {
		return err
	}
	if b.SHA256 == "" {
		return nil
	}
	if err := checkPermissions(b.Path, fileOwner); err != nil {
		return err
	}
	if sum, err := hex.DecodeString(b.SHA256); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("the recorded sha256 %q is no hash", b.SHA256)
	}
	got, err := HashFile(b.Path)
	if err != nil {
		return err
	}
	if got != b.SHA256 {
		return fmt.Errorf("its sha256 is %s, but %s was installed; run `quartet plugin install` again if you trust the new one", got, b.SHA256)
	}
	return nil
}

func checkExecutable(path string) error {
	if err := inputfile.Regular(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not executable; chmod +x it", path)
	}
	return nil
}

const writableByOthers = 0o022

// checkPermissions refuses a file that others could write or replace: it and its folder, where a link leads, belong to
// us or to root, and nobody else writes them.
func checkPermissions(path string, ownerOf func(os.FileInfo) (user uint32, known bool)) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, checked := range []string{real, filepath.Dir(real)} {
		info, err := os.Stat(checked)
		if err != nil {
			return err
		}
		what := checked
		if info.IsDir() {
			what = "the folder " + checked
		}
		if info.Mode().Perm()&writableByOthers != 0 {
			return fmt.Errorf("%s can be written by others; chmod go-w it", what)
		}
		if owner, known := ownerOf(info); known && !trusted(owner, os.Getuid()) {
			return fmt.Errorf("%s belongs to user %d; take it over, or install the plugin yourself", what, owner)
		}
	}
	return nil
}

// fileOwner is the user that a file belongs to, where the system has users.
func fileOwner(info os.FileInfo) (user uint32, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return stat.Uid, true
}

// trusted reports whether we may run what belongs to a user: ourselves, or root.
func trusted(owner uint32, us int) bool { return owner == 0 || int(owner) == us }

// mostBytes is more than any plugin has.
const mostBytes = 1 << 30

// HashFile returns the sha256 of the file of a plugin, in hex.
func HashFile(path string) (string, error) {
	f, err := inputfile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, mostBytes+1)); err != nil {
		return "", err
	} else if n > mostBytes {
		return "", fmt.Errorf("%s is larger than %d MiB", path, mostBytes>>20)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
