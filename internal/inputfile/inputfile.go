// Package inputfile opens what a program reads. It refuses, at once and with the reason, what is no regular file: opening a pipe waits
// for its writer, and a device may have no end.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Largest sizes of files that are read whole, in bytes.
const (
	Document int64 = 64 << 20 // configs, job files, manifests and records
	Table    int64 = 2 << 30  // traces and the tables of runs
)

// Open opens a regular file for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile of a regular file. The error for anything else is an *fs.PathError that says what it is.
func OpenFile(path string, flags int, mode fs.FileMode) (*os.File, error) {
	if err := Regular(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // before it is opened, for opening a device may change it
		return nil, err
	}
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, mode) // another file may have taken its place
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		_ = f.Close() // nothing was done with it
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// Regular returns an *fs.PathError that says what is at a path, unless that is a regular file.
func Regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := regular(info); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return nil
}

// Read reads a regular file whole, unless it is larger than most bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := content(f, most)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

func content(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, tooLarge(most)
	}
	text := make([]byte, 0, info.Size()+1) // the system says 0 of some that have a content
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > most:
			return nil, tooLarge(most)
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			return nil, cause(err)
		case len(text) == cap(text):
			text = append(text, 0)[:len(text)]
		}
	}
}

// All reads a stream to its end, unless it has more than most bytes.
func All(in io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, tooLarge(most)
	}
	return text, err
}

// cause is an error without the path that a *fs.PathError names.
func cause(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}

func tooLarge(most int64) error {
	return fmt.Errorf("it is larger than %d MiB, the most that is read", most>>20)
}

// regular says what a file is that is not regular; nil for one that is.
func regular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return syscall.EISDIR
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("it is a pipe, not a regular file; write what it carries to a file and name that")
	case mode&fs.ModeSocket != 0:
		return errors.New("it is a socket, not a regular file")
	case mode&fs.ModeDevice != 0:
		return errors.New("it is a device, not a regular file")
	}
	return errors.New("it is not a regular file")
}

// Folder is os.DirFS whose files are opened by Open.
func Folder(dir string) fs.FS { return folder{os.DirFS(dir), dir} }

type folder struct {
	fs.FS
	dir string
}

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) {
	info, err := fs.Stat(f.FS, name)
	if err != nil || info.IsDir() {
		return f.FS.Open(name)
	}
	file, err := Open(filepath.Join(f.dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Stat implements fs.StatFS.
func (f folder) Stat(name string) (fs.FileInfo, error) { return fs.Stat(f.FS, name) }
