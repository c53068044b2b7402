package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Files of an output folder.
const (
	layoutFolder = "oci"
	archiveFile  = "quartet.tar"
	digestFile   = "digest"
)

// Write puts an index into a folder, in place of what an earlier run left there, and returns its digest.
func Write(index v1.ImageIndex, about About, folder string) (string, error) {
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	// The layout is made beside the last one and takes its place: no blob of that stays.
	fresh, err := os.MkdirTemp(folder, ".oci-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", err
	}
	if err := writeLayout(index, about, fresh); err != nil {
		return "", err
	}
	if err := writeArchive(fresh, filepath.Join(folder, archiveFile)); err != nil {
		return "", err
	}
	to := filepath.Join(folder, layoutFolder)
	if err := errors.Join(os.RemoveAll(to), os.Rename(fresh, to)); err != nil {
		return "", err
	}
	return digest.String(), os.WriteFile(filepath.Join(folder, digestFile), []byte(digest.String()+"\n"), 0o644)
}

// writeLayout names the index by its version, as tools that load a layout expect.
func writeLayout(index v1.ImageIndex, about About, folder string) error {
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	return at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": about.Version,
		"io.containerd.image.name":          "quartet:" + about.Version,
	}))
}

// writeArchive makes a tar archive of a folder, the same whenever it is made.
func writeArchive(folder, to string) (err error) {
	out, err := os.CreateTemp(filepath.Dir(to), ".tar-")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err == nil {
			err = errors.Join(os.Chmod(out.Name(), 0o644), os.Rename(out.Name(), to))
		}
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error { // in order of names
		if err != nil || name == folder {
			return err
		}
		inside, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		h := tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(inside) + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR}
		if d.IsDir() {
			return w.WriteHeader(&h)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeReg, strings.TrimSuffix(h.Name, "/"), 0o644, info.Size()
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		if _, err = io.Copy(w, in); err != nil {
			return fmt.Errorf("archive %s: %w", inside, err)
		}
		return nil
	})
	return errors.Join(err, w.Close())
}
