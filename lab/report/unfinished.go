package report

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// SoFar is what the scheduler of an unfinished run knows about it, besides what is in its folder.
type SoFar struct {
	Files      map[string][]byte // those that are written when the run ends, as they would be if it ended now
	NowSeconds float64           // present of the run, in seconds
	Trouble    string            // why the scheduler answered nothing; empty when it did
}

// ReadRunSoFar is ReadRun of an unfinished run. What its scheduler did not answer is read as of a run that was killed.
func ReadRunSoFar(dir string, told *SoFar) (*Run, error) {
	return readRun(inputfile.Folder(dir), dir, told)
}

// Unended reports whether a folder holds files of a run that has not ended, or was killed: those that have no final name yet.
func Unended(dir string) bool { return len(unnamed(inputfile.Folder(dir))) > 0 }

// The files of a run, which have other names until it has ended.
var runFiles = [...]string{
	"manifest.json", "summary.json", "jobs.csv", "rounds.csv", "decisions.jsonl", "timeline.csv", "nodes.csv", "usage.csv", "fairness.csv",
	"accelerators.csv", "tenants.csv", "training.csv", "efficiency.csv",
}

// unnamed are the latest files that a run has not given their names yet, by these names.
func unnamed(files fs.FS) map[string]string {
	entries, _ := fs.ReadDir(files, ".") // a folder that cannot be read says so when its files are
	found, latest := map[string]string{}, map[string]int64{}
	for _, e := range entries {
		for _, name := range runFiles {
			rest, is := strings.CutPrefix(e.Name(), "."+name+"-")
			if _, err := strconv.ParseUint(rest, 10, 64); !is || err != nil {
				continue
			}
			info, err := e.Info()
			if at := int64(0); err == nil {
				if at = info.ModTime().UnixNano(); found[name] == "" || at >= latest[name] {
					found[name], latest[name] = e.Name(), at
				}
			}
		}
	}
	return found
}

// A source is where the files of a run are read from.
type source struct {
	files   fs.FS
	told    map[string][]byte
	unnamed map[string]string // nil for a run that has ended
}

// open finds out whether a run goes on, and where its files are.
func (r *Run) open(files fs.FS, told *SoFar) source {
	from := source{files: files}
	left := unnamed(files)
	var before Manifest
	text, err := fs.ReadFile(files, "manifest.json")
	ended := err == nil && (readJSON(bytes.NewReader(text), &before) != nil || !before.Interrupted && before.Failed == "")
	switch {
	case told != nil && told.Trouble == "":
		r.Unended, r.now, from.told, from.unnamed = true, told.NowSeconds, told.Files, left
		r.Problems = append(r.Problems, fmt.Sprintf("The run has not ended: this is what is known %s after it began.", span(r.now)))
	case len(left) > 0 && !ended:
		r.Unended, from.unnamed = true, left
		if told != nil {
			r.Problems = append(r.Problems, "The run has not ended: this is what is in its folder. "+capital(told.Trouble)+".")
			break
		}
		r.Problems = append(r.Problems, "The run has not ended, or was killed: this is what it wrote until then. Its figures and the submissions of its jobs come at the end.")
	case len(left) > 0:
		r.Problems = append(r.Problems, "Another run has begun in this folder and has not ended, or was killed: this is the one before.")
	case told != nil:
		r.Problems = append(r.Problems, capital(told.Trouble)+".")
	}
	return from
}

// OpenFile opens a file of the run in a folder, such as decisions.jsonl. That of a run that has not ended, or was killed, is read up to its last whole
// line. The error is fs.ErrNotExist where there is none, or nothing in it yet.
func OpenFile(dir, name string) (io.ReadCloser, error) {
	files := inputfile.Folder(dir)
	return new(Run).open(files, nil).open(name)
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func (s source) open(name string) (io.ReadCloser, error) {
	if content, known := s.told[name]; known {
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	if s.unnamed == nil {
		return s.files.Open(name)
	}
	hidden := s.unnamed[name]
	if hidden == "" {
		return nil, fs.ErrNotExist
	}
	text, err := fs.ReadFile(s.files, hidden)
	if err != nil {
		return nil, err
	}
	if path.Ext(name) != ".json" {
		text = text[:bytes.LastIndexByte(text, '\n')+1] // the rest is being written
	}
	if len(text) == 0 {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

// digested reads and adds up the digest.
type digested struct {
	in  io.Reader
	sum hash.Hash
}

func (d *digested) Read(p []byte) (int, error) {
	n, err := d.in.Read(p)
	d.sum.Write(p[:n])
	return n, err
}

// changed says what is wrong with a file that is not that of a digest; nothing without one.
func (d *digested) changed(recorded string) string {
	if recorded == "" {
		return ""
	}
	_, _ = io.Copy(io.Discard, d) // the parser may have stopped before the end
	return metrics.Changed(hex.EncodeToString(d.sum.Sum(nil)), recorded)
}

// recorded is the digest of an output in the manifest; empty when there is none.
func (r *Run) recorded(name string) string {
	for _, d := range r.Manifest.Outputs {
		if d.File == name {
			return d.SHA256
		}
	}
	return ""
}

// contradiction says in what the summary is not that of the jobs.
func (r *Run) contradiction() string {
	if r.Summary == nil || r.derived || len(r.Jobs.name) == 0 {
		return ""
	}
	jobs := make([]metrics.Job, len(r.Jobs.name))
	for i := range jobs {
		jobs[i] = metrics.Job{
			JCTSeconds: metrics.Number(r.Jobs.jct[i]), QueueingSeconds: metrics.Number(r.Jobs.queueing[i]),
			Restarts: int(zeroed(r.Jobs.restarts[i])), GPUSeconds: r.Jobs.usage[i],
		}
	}
	return r.Summary.Contradiction(jobs)
}

// enter adds a job that only the decisions name.
func (h *history) enter(name string) int {
	j := &h.run.Jobs
	i := len(j.name)
	j.id, j.name = append(j.id, -1-i), append(j.name, name) // no table knows it by its number
	j.application, j.outcome = append(j.application, ""), append(j.outcome, "unfinished")
	for _, column := range []*[]float64{&j.submit, &j.first, &j.finish, &j.jct, &j.queueing, &j.replicas, &j.restarts, &j.usage} {
		*column = append(*column, math.NaN())
	}
	h.rows[name] = i
	h.open, h.waits = append(h.open, 0), append(h.waits, 0)
	return i
}

// derive notes of a job what jobs.csv would tell, as far as a decision does.
func (h *history) derive(job int, d *decision) {
	j := &h.run.Jobs
	switch {
	case (d.Action == "start" || d.Event == "job_submitted") && math.IsNaN(j.first[job]):
		j.first[job] = d.At
	case d.Verdict == "reject":
		j.outcome[job] = "rejected"
	case strings.HasPrefix(d.Event, "job_"):
		outcome := map[string]string{"job_finished": "completed", "job_failed": "failed", "job_cancelled": "cancelled"}[d.Event]
		if j.outcome[job] = cmp.Or(outcome, j.outcome[job]); outcome != "" {
			j.finish[job] = d.At
		}
	}
}
