package compare

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/lab/study"
)

// Side is one of the things that are compared.
type Side struct {
	Label string // as it was given
	Runs  []*Run // in the order of the study, or of the folders

	folder string
	study  *study.Kept // nil for folders of runs
	chosen int         // axis of the item that takes part; -1 for the whole study
	item   string
}

// Run is one run of a side.
type Run struct {
	Label       string           // how tables name the run
	Summary     *metrics.Summary // content of summary.json of the run
	Jobs        []metrics.Job    // nil when they were not written
	Seed        uint64           // seed of the run
	Inputs      []quartet.Digest // digests of its input files
	Plugins     []quartet.Plugin // plugins that took part
	Version     string           // of the program
	Interrupted bool             // the figures are those up to then
	Changed     bool             // its config was changed while it ran
	Items       []string         // of the axes of a study
	Replicate   int              // number of the replicate of a study, from 1

	leaves  []configs.Leaf // of its resolved config
	jobsKey string         // of what is known of its jobs
}

// The file of a run that is read besides those that package quartet names.
const jobsFile = "jobs.csv"

// Separator is between a study and an item of its compared axis.
const Separator = "@"

// Options say how sides are read.
type Options struct {
	// Resolve fills in what an earlier version of the program did not write into a resolved config. Nil, or an error, leaves the
	// config as it is.
	Resolve func(config []byte) ([]byte, error)
}

// ReadSide reads the folder of a run, a folder that holds several, or that of a study; STUDY@ITEM is one item of an axis
// of a study, of the compared one where several have it. An error that a user can mend is a core.Diagnostics.
func ReadSide(path string, o Options) (*Side, error) {
	dir, item := path, ""
	info, err := os.Stat(path)
	if at := strings.LastIndex(path, Separator); errors.Is(err, fs.ErrNotExist) && at > 0 {
		if study, studyErr := os.Stat(path[:at]); studyErr == nil {
			dir, item, info, err = path[:at], path[at+1:], study, nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem(path, "there is no such folder", "give the folder of a run, such as "+filepath.Join("runs", "default")+", one that holds several, or that of a study")
	case err != nil:
		return nil, problem(path, err.Error(), "")
	case !info.IsDir():
		return nil, problem(path, "is no folder", "give the folder of a run, not a file in it")
	}
	s := &Side{Label: path, folder: dir}
	switch {
	case exists(dir, study.RunsFile):
		err = s.readStudy(dir, item, o)
	case item != "":
		err = problem(path, dir+" is no study, so that it has no "+strconv.Quote(item), "")
	case isRun(dir):
		var r *Run
		r, err = readRun(dir, o)
		s.Runs = []*Run{r}
	default:
		err = s.readFolder(dir, o)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// isRun reports whether a folder holds files of a run, be it one that has not ended.
func isRun(dir string) bool {
	for _, name := range []string{quartet.ManifestFile, quartet.SummaryFile, jobsFile} {
		if exists(dir, name) {
			return true
		}
	}
	return goesOn(dir)
}

// goesOn reports whether a folder holds files that a run has not given their names yet.
func goesOn(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), "."+jobsFile+"-") })
}

// readFolder reads the runs that a folder holds, in the order of their names.
func (s *Side) readFolder(dir string, o Options) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return problem(dir, err.Error(), "")
	}
	var found core.Diagnostics
	for _, e := range entries {
		inside := filepath.Join(dir, e.Name())
		if info, err := os.Stat(inside); err != nil || !info.IsDir() || !isRun(inside) {
			continue
		}
		r, err := readRun(inside, o)
		if err != nil {
			found = append(found, diagnostics(inside, err)...)
			continue
		}
		s.Runs = append(s.Runs, r)
	}
	if len(s.Runs)+len(found) == 0 {
		if exists(dir, study.StudyFile) {
			return problem(dir, "the study has not ended: it has no "+study.RunsFile+" yet", "the same quartet bench resumes it")
		}
		return problem(dir, "holds neither a run nor runs nor a study", "a run leaves "+quartet.ManifestFile+", a study "+study.RunsFile)
	}
	return found.Err()
}

// readRun reads the folder of one run.
func readRun(dir string, o Options) (*Run, error) {
	m, err := quartet.LoadManifest(filepath.Join(dir, quartet.ManifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) && goesOn(dir):
		return nil, problem(dir, "the run has not ended, or was killed: it has no "+quartet.ManifestFile+" yet", "wait until it has ended")
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem(dir, quartet.ManifestFile+" is not there", "without it the run cannot be identified")
	case err != nil:
		return nil, problem(filepath.Join(dir, quartet.ManifestFile), err.Error(), "")
	case m.Schema != quartet.ManifestSchema:
		return nil, problem(filepath.Join(dir, quartet.ManifestFile), fmt.Sprintf("schema is %q", m.Schema), fmt.Sprintf("this program reads %q", quartet.ManifestSchema))
	case m.Failed != "":
		return nil, problem(dir, "the run failed: "+m.Failed, "only a run that ended can be compared")
	case m.Config == "":
		return nil, problem(filepath.Join(dir, quartet.ManifestFile), "holds no config", "what was run is unknown")
	}
	r := &Run{
		Label: dir, Seed: m.Seed, Inputs: m.Inputs, Plugins: m.Plugins,
		Version: fmt.Sprintf("%s (commit %s)", m.Quartet, m.Commit), Interrupted: m.Interrupted, Changed: len(m.Earlier) > 0,
	}
	if err := r.takeConfig([]byte(m.Config), o); err != nil {
		return nil, problem(filepath.Join(dir, quartet.ManifestFile), err.Error(), "")
	}
	if r.Summary, err = readSummary(filepath.Join(dir, quartet.SummaryFile)); err != nil {
		return nil, err
	}
	if err := r.readJobs(dir, m); err != nil {
		return nil, err
	}
	if r.Jobs != nil {
		if what := r.Summary.Contradiction(r.Jobs); what != "" {
			return nil, problem(filepath.Join(dir, quartet.SummaryFile), what, "it was changed; run it again")
		}
	}
	return r, nil
}

func readSummary(path string) (*metrics.Summary, error) {
	text, err := inputfile.Read(path, inputfile.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem(path, "is not there", "the folder of a run holds it; run it again")
	}
	var s metrics.Summary
	if err == nil {
		err = json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &s)
	}
	if err != nil {
		return nil, problem(path, "cannot be read whole: "+err.Error(), "")
	}
	if s.Schema != metrics.SummarySchema {
		return nil, problem(path, fmt.Sprintf("schema is %q", s.Schema), fmt.Sprintf("this program reads %q", metrics.SummarySchema))
	}
	return &s, nil
}

// readJobs reads jobs.csv, if it was written, and holds it to the digest of the manifest.
func (r *Run) readJobs(dir string, m *quartet.Manifest) error {
	path := filepath.Join(dir, jobsFile)
	at := slices.IndexFunc(m.Outputs, func(d quartet.Digest) bool { return d.File == jobsFile })
	text, err := inputfile.Read(path, inputfile.Table)
	if errors.Is(err, fs.ErrNotExist) && at < 0 {
		return nil // output.write leaves it out
	}
	if errors.Is(err, fs.ErrNotExist) {
		return problem(path, "is not there, and the run wrote it", "")
	}
	if err != nil {
		return problem(path, err.Error(), "")
	}
	if sum := sha256.Sum256(text); at >= 0 {
		if what := metrics.Changed(hex.EncodeToString(sum[:]), m.Outputs[at].SHA256); what != "" {
			return problem(path, what, "it was cut short or changed; run it again")
		}
	}
	jobs, err := metrics.ReadJobs(bytes.NewReader(text))
	if err != nil {
		return problem(path, err.Error(), "")
	}
	r.takeJobs(jobs)
	return nil
}

// takeConfig keeps the settings of a resolved config.
func (r *Run) takeConfig(config []byte, o Options) (err error) {
	if o.Resolve != nil {
		if whole, err := o.Resolve(config); err == nil {
			config = whole
		}
	}
	r.leaves, err = configs.Leaves(config)
	return err
}

// takeJobs keeps the jobs of a run, and what they are recognised by.
func (r *Run) takeJobs(jobs []metrics.Job) {
	if jobs == nil {
		jobs = []metrics.Job{}
	}
	r.Jobs = jobs
	var b []byte
	sum := sha256.New()
	for i := range jobs {
		b = append(b[:0], jobs[i].Name...)
		b = append(append(append(b, 0), jobs[i].Application...), 0)
		b = append(metrics.AppendNumber(b, jobs[i].SubmitSeconds), '\n')
		sum.Write(b)
	}
	r.jobsKey = hex.EncodeToString(sum.Sum(nil))
}

// choose finds the axis of an item: the compared one, or else the only one that has it.
func (s *Side) choose(item string) error {
	s.item = item
	var axes, names []string
	for i := range s.study.Axes {
		axis := &s.study.Axes[i]
		items := itemNames(axis)
		names = append(names, items...)
		switch {
		case !slices.Contains(items, item):
		case i == s.study.Compared:
			s.chosen = i
			return nil
		default:
			s.chosen = i
			axes = append(axes, axis.Name)
		}
	}
	switch len(axes) {
	case 0:
		return problem(s.Label, fmt.Sprintf("nothing on the axes of the study is called %q", item), core.SuggestHint(item, "names", names))
	case 1:
		return nil
	}
	return problem(s.Label, fmt.Sprintf("%q is on several axes of the study: %s", item, strings.Join(axes, ", ")), "an item of "+s.study.Axes[s.study.Compared].Name+" can be chosen")
}

func itemNames(axis *study.Axis) (names []string) {
	for i := range axis.Items {
		names = append(names, axis.Items[i].Name)
	}
	return names
}

// on are the items of an axis that take part.
func (s *Side) on(axis int) []string {
	if s.chosen == axis {
		return []string{s.item}
	}
	return itemNames(&s.study.Axes[axis])
}

// readStudy reads the runs of a study, or of one item of an axis.
func (s *Side) readStudy(dir, item string, o Options) error {
	k, err := study.ReadKept(dir)
	if err != nil {
		return diagnostics(dir, err)
	}
	s.study, s.chosen = k, -1
	if item != "" {
		if err := s.choose(item); err != nil {
			return err
		}
	}
	var found core.Diagnostics
	for i := range k.Runs {
		kept := &k.Runs[i]
		if s.chosen >= 0 && kept.Items[s.chosen] != s.item {
			continue
		}
		label := fmt.Sprintf("%s: %s, replicate %d", dir, strings.Join(kept.Items, ", "), kept.Replicate)
		if kept.Record == nil || kept.Summary == nil {
			found = append(found, core.Diagnostic{
				Position: core.Position{File: clean(dir)}, Summary: clean(fmt.Sprintf("%s, replicate %d: the run is %s", strings.Join(kept.Items, ", "), kept.Replicate, kept.Outcome)),
				Hint: "run the study to its end with quartet bench",
			})
			continue
		}
		if kept.Config == "" {
			return problem(dir, "what is kept of its runs does not hold their configs: an earlier version of the program ran them", "run the study again")
		}
		r := &Run{
			Label: label, Summary: kept.Summary, Seed: kept.Seed, Inputs: kept.Record.Inputs,
			Plugins: kept.Plugins, Items: kept.Items, Replicate: kept.Replicate,
		}
		jobs, err := k.Jobs(kept)
		if err == nil {
			err = r.takeConfig([]byte(kept.Config), o)
		}
		if err != nil {
			return problem(dir, err.Error(), "run the study again")
		}
		r.takeJobs(jobs)
		s.Runs = append(s.Runs, r)
	}
	return found.Err()
}

// problem is a single thing wrong with what the user gave.
func problem(place, summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: clean(place)}, Summary: clean(summary), Hint: clean(hint)}}
}

// clean makes names of folders, jobs and settings fit for a terminal.
func clean(text string) string { return core.CleanText(text, core.MaxText) }

// diagnostics are what an error tells of a folder.
func diagnostics(place string, err error) core.Diagnostics {
	if ds, ok := errors.AsType[core.Diagnostics](err); ok {
		return ds
	}
	return core.Diagnostics{{Position: core.Position{File: clean(place)}, Summary: clean(err.Error())}}
}
