package host

import (
	"io"
	"os"
	"path/filepath"
)

// replaceFile writes a file at once: nobody ever sees half of it, and what runs from the old one runs on.
func replaceFile(path string, content io.Reader, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // there is none once it has its name
	defer f.Close()           // twice does no harm
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
