package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files of a run that depend on nothing but its config and inputs: the same run writes the same bytes.
var repeatableFiles = []string{
	"jobs.csv", "rounds.csv", "decisions.jsonl", "accelerators.csv", "fairness.csv", "tenants.csv", "timeline.csv", "nodes.csv", "usage.csv",
	"training.csv", "efficiency.csv", "reports.csv", "trials.csv",
}

// The files that every run writes besides.
const (
	SummaryFile  = "summary.json"
	ManifestFile = "manifest.json"
)

// Digest names a file and its content.
type Digest struct {
	File   string `json:"file"`   // name of an output, or path of an input
	SHA256 string `json:"sha256"` // of its bytes, hex
}

// outputs writes the files of a run. They keep temporary names until commit, so that a folder never holds the files of
// half a run. With no folder, content is only digested.
type outputs struct {
	dir   string
	keep  bool // the content, too
	files []*output
	begun string // file of the manifest as it is while the run goes on
}

type output struct {
	name string
	file *os.File // nil when only digested
	hash hash.Hash
	kept *bytes.Buffer // nil when the content is not kept
	out  io.Writer
}

func newOutputs(dir string, keep bool) (*outputs, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the output folder: %w", err)
		}
	}
	return &outputs{dir: dir, keep: keep}, nil
}

// create begins a file.
func (o *outputs) create(name string) (io.Writer, error) {
	f := &output{name: name, hash: sha256.New()}
	to := []io.Writer{f.hash}
	if o.keep {
		f.kept = &bytes.Buffer{}
		to = append(to, f.kept)
	}
	if o.dir != "" {
		file, err := os.CreateTemp(o.dir, "."+name+"-*")
		if err != nil {
			return nil, fmt.Errorf("create %q: %w", filepath.Join(o.dir, name), err)
		}
		f.file = file
		to = append(to, file)
	}
	f.out = io.MultiWriter(to...)
	o.files = append(o.files, f)
	return f.out, nil
}

// write adds a whole file.
func (o *outputs) write(name string, content []byte) error {
	w, err := o.create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return nil
}

// digests lists what was written so far, in the order of creation.
func (o *outputs) digests() []Digest {
	list := []Digest{}
	for _, f := range o.files {
		list = append(list, Digest{File: f.name, SHA256: hex.EncodeToString(f.hash.Sum(nil))})
	}
	return list
}

// contents lists what was written so far, with its content where that is kept.
func (o *outputs) contents() []File {
	list := make([]File, len(o.files))
	for i, d := range o.digests() {
		list[i].Digest = d
		if kept := o.files[i].kept; kept != nil {
			list[i].Content = kept.Bytes()
		}
	}
	return list
}

// commit gives every file its name, the last one created last, and removes what an earlier run of the same name left
// and this one did not write.
func (o *outputs) commit() error {
	if o.dir == "" {
		return nil
	}
	written := map[string]bool{}
	for _, f := range o.files {
		written[f.name] = true
		if err := f.commit(o.dir); err != nil {
			return fmt.Errorf("write %q: %w", filepath.Join(o.dir, f.name), err)
		}
	}
	for _, name := range repeatableFiles {
		if written[name] {
			continue
		}
		if err := os.Remove(filepath.Join(o.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the file of an earlier run: %w", err)
		}
	}
	o.ended()
	return nil
}

// ended removes the manifest of the run that went on.
func (o *outputs) ended() {
	if o.begun != "" {
		_ = os.Remove(o.begun) // best effort: the next run removes it
		o.begun = ""
	}
}

func (f *output) commit(dir string) error {
	temporary := f.file.Name()
	if err := f.file.Chmod(0o644); err != nil {
		return err
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(dir, f.name)); err != nil {
		return err
	}
	f.file = nil
	return nil
}

// removeLeftovers removes what a run that was killed had not committed. No other run may write into the folder.
func removeLeftovers(dir string) error {
	left, err := leftovers(dir)
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove the file of a killed run: %w", err)
		}
	}
	return nil
}

// leftovers lists the files of runs that have not committed them.
func leftovers(dir string) (list []string, err error) {
	for _, name := range append([]string{SummaryFile, ManifestFile}, repeatableFiles...) {
		left, err := filepath.Glob(filepath.Join(globQuoted(dir), "."+name+"-*"))
		if err != nil {
			return nil, err
		}
		list = append(list, left...)
	}
	return list, nil
}

// globQuoted is a path as a pattern that matches it alone.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// begin leaves the manifest of a run that goes on, for readers of the folder before the run has ended.
func (o *outputs) begin(manifest []byte) error {
	if o.dir == "" {
		return nil
	}
	f, err := os.CreateTemp(o.dir, "."+ManifestFile+"-*")
	if err != nil {
		return fmt.Errorf("create %q: %w", filepath.Join(o.dir, ManifestFile), err)
	}
	_, err = f.Write(manifest)
	err = errors.Join(err, f.Close())
	switch {
	case err != nil:
	case o.begun != "":
		err = os.Rename(f.Name(), o.begun) // in the place of the one before, never half of it
	default:
		o.begun = f.Name()
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort; the one before stays
		return fmt.Errorf("write %q: %w", filepath.Join(o.dir, ManifestFile), err)
	}
	return nil
}

// Close removes what was not committed.
func (o *outputs) Close() {
	o.ended()
	for _, f := range o.files {
		if f.file != nil {
			_ = f.file.Close()
			_ = os.Remove(f.file.Name()) // best effort: the run failed already
		}
	}
	if o.dir != "" {
		_ = os.Remove(o.dir) // goes only when it is empty: nothing was written
	}
}
