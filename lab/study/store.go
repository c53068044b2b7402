package study

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// The outcomes of a run in the tables.
const (
	Completed  = "completed"  // every job ended
	Unfinished = "unfinished" // some jobs did not: nothing was left that could happen
	Failed     = "failed"     // the run ended by an error
	Missing    = "missing"    // it was not run yet
)

// Record is what is kept of a run.
type Record struct {
	Schema      string           `json:"schema"`            // version of the format
	Hash        string           `json:"hash"`              // hash of what the run depends on
	Outcome     string           `json:"outcome"`           // Completed, Unfinished or Failed
	Error       string           `json:"error,omitempty"`   // error that ended the run
	Notes       []string         `json:"notes,omitempty"`   // notes of the run
	OfferedLoad metrics.Number   `json:"offered_load"`      // requested device time over the device time of the cluster; a ratio
	Summary     *metrics.Summary `json:"summary,omitempty"` // nil when the run failed
	Inputs      []quartet.Digest `json:"inputs,omitempty"`  // digests of its input files
	Plugins     []quartet.Plugin `json:"plugins,omitempty"` // plugins that took part
	Config      string           `json:"config,omitempty"`  // resolved config, in YAML

	// Digests are the SHA-256 of what is kept of jobs.csv and of others, by name.
	Digests map[string]string `json:"digests,omitempty"`
	// Tables are the headers of what is kept besides jobs.csv, by name.
	Tables map[string]string `json:"tables,omitempty"`
}

// store is the folder of what is kept. Every file is whole: it is written under another name and renamed.
type store struct {
	dir       string
	digests   sync.Map // of input files, by path: func() string
	unchanged bool     // only runs of input files as they are here count
}

// The names of what is in the folder of a study.
const (
	storeFolder = ".runs"
	temporary   = ".tmp-"
	lockFile    = ".lock"
)

func (s *store) path(hash string) string { return filepath.Join(s.dir, storeFolder, hash+".json") }
func (s *store) tablePath(hash, name string) string {
	return filepath.Join(s.dir, storeFolder, hash+"."+name+".gz")
}

// jobsTable is the table that is kept of every run.
const jobsTable = "jobs"

// tables lists what is kept of a run that did not fail.
func (r *Record) tables() []string {
	return append([]string{jobsTable}, slices.Sorted(maps.Keys(r.Tables))...)
}

// read returns what is kept of a run; nil when nothing is, or what cannot be used.
func (s *store) read(hash string) *Record {
	text, err := inputfile.Read(s.path(hash), inputfile.Document)
	if err != nil {
		return nil
	}
	var r Record
	if json.Unmarshal(text, &r) != nil || r.Schema != recordSchema || r.Hash != hash {
		return nil
	}
	if r.Outcome != Failed {
		if r.Summary == nil {
			return nil
		}
		for _, name := range r.tables() {
			if digest := digestOf(s.tablePath(hash, name)); digest == "" || digest != r.Digests[name] {
				return nil
			}
		}
	}
	return &r
}

// usable reports whether the input files of a record are still what they were.
func (s *store) usable(r *Record) bool {
	for _, in := range r.Inputs {
		if s.digest(in.File) != in.SHA256 {
			return false
		}
	}
	return true
}

// digest is that of an input file as it is here; empty where it cannot be read.
func (s *store) digest(path string) string {
	digest, _ := s.digests.LoadOrStore(path, sync.OnceValue(func() string { return digestOf(path) }))
	return digest.(func() string)()
}

func digestOf(path string) string {
	f, err := inputfile.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// write keeps a run: its tables first, for the record says that all are there.
func (s *store) write(r *Record, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header, _, _ := strings.Cut(string(files[name]), "\n")
		packed, err := pack(r.Hash[:12], files[name])
		if err == nil {
			err = replace(s.tablePath(r.Hash, name), packed)
		}
		if err != nil {
			return err
		}
		if r.Digests == nil {
			r.Digests = map[string]string{}
		}
		sum := sha256.Sum256(packed)
		r.Digests[name] = hex.EncodeToString(sum[:])
		if name != jobsTable {
			if r.Tables == nil {
				r.Tables = map[string]string{}
			}
			r.Tables[name] = header
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return replace(s.path(r.Hash), append(text, '\n'))
}

// pack compresses the rows of a table, each with the run before it. The header is left out, so that the packed rows of
// several runs, one after another, are the rows of a table.
func pack(run string, table []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, rows, _ := bytes.Cut(table, []byte("\n"))
	quoted := false // within a cell that may hold line ends
	begin := true
	for _, line := range bytes.SplitAfter(rows, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if begin {
			if _, err := io.WriteString(z, run+","); err != nil {
				return nil, err
			}
		}
		if _, err := z.Write(line); err != nil {
			return nil, err
		}
		if bytes.Count(line, []byte(`"`))%2 == 1 {
			quoted = !quoted
		}
		begin = !quoted
	}
	err := z.Close()
	return b.Bytes(), err
}

// replace writes a whole file in one step.
func replace(path string, content []byte) error {
	return replaceBy(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func replaceBy(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*")
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // best effort: it failed already
			err = fmt.Errorf("write %q: %w", path, err)
		}
	}()
	if err = errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// open makes the folders and takes the lock of a study. A shard takes one of its own: several work beside one another, and what
// each keeps it writes in one step.
func open(dir, lock string) (s *store, closed func(), err error) {
	s = &store{dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, storeFolder), 0o755); err != nil {
		return nil, nil, fmt.Errorf("make the folder of the study: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lock), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("the folder of the study cannot be written: %w", err)
	}
	if !tryLock(f) {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		return nil, nil, fmt.Errorf("process %s works on %s; wait until it has ended, or take another name", strings.TrimSpace(string(holder)), dir)
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintln(os.Getpid()))); err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("the folder of the study cannot be written: %w", err)
	}
	if lock == lockFile {
		s.sweep()
	}
	return s, func() { _ = f.Close() }, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// sweep removes what killed processes had not renamed yet, unless shards are at work, which may be about to.
func (s *store) sweep() {
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), lockFile+"-") {
			continue
		}
		f, err := os.OpenFile(filepath.Join(s.dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			return
		}
		defer f.Close() // until the end, so that no shard begins meanwhile
		if !tryLock(f) {
			return
		}
	}
	for _, folder := range []string{s.dir, filepath.Join(s.dir, storeFolder)} {
		entries, _ := os.ReadDir(folder)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), temporary) {
				_ = os.Remove(filepath.Join(folder, e.Name())) // it is in nobody's way
			}
		}
	}
}

// take copies what another folder keeps of a run; false where it keeps nothing.
func (s *store) take(from *store, hash string) (bool, error) {
	r := from.read(hash)
	if r == nil {
		return false, nil
	}
	if r.Outcome != Failed {
		for _, name := range r.tables() {
			rows, err := inputfile.Read(from.tablePath(hash, name), inputfile.Table)
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			if err == nil {
				err = replace(s.tablePath(hash, name), rows)
			}
			if err != nil {
				return false, err
			}
		}
	}
	text, err := inputfile.Read(from.path(hash), inputfile.Document)
	if err != nil {
		return false, err
	}
	return true, replace(s.path(hash), text)
}
