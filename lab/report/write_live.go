package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// An Entry is a run or a study in the list of a folder.
type Entry struct {
	Name, Kind, Link string    // name, kind (run or study) and link of its page
	Live             bool      // its scheduler may be asked
	Facts            [4]string // cells of its row: allocation, jobs, mean completion time, devices held
}

// WriteIndex writes the page that lists the runs and studies of a folder.
func WriteIndex(w io.Writer, title string, entries []Entry) error {
	data := newPack()
	data.value("kind", "list")
	g := grid{Caption: runsAndStudies(entries), Head: []string{"name", "kind", "allocation", "jobs", "completion time, mean", "devices held"}}
	for _, e := range entries {
		row := []cell{{Text: e.Name, Link: e.Link}, {Text: e.Kind}}
		g.Rows = append(g.Rows, append(row, plain(e.Facts[:]...)...))
	}
	p := &page{Title: title, Sections: []section{{ID: "runs", Title: "Runs and studies", Filter: true, Tables: []grid{g}}}}
	if len(entries) == 0 {
		p.Sections = []section{{ID: "runs", Title: "Runs and studies", Text: []string{"There are no runs yet: quartet simulate makes one."}}}
	}
	return p.write(w, data, dataScript, listScript, startScript)
}

// runsAndStudies counts the entries of a list by what they are.
func runsAndStudies(entries []Entry) string {
	studies := 0
	for _, e := range entries {
		if e.Kind == "study" {
			studies++
		}
	}
	switch runs := len(entries) - studies; {
	case studies == 0:
		return counted(runs, "run")
	case studies == 1:
		return counted(runs, "run") + ", 1 study"
	default:
		return fmt.Sprintf("%s, %d studies", counted(runs, "run"), studies)
	}
}

// WriteLive writes the page of an unfinished run: that of WriteRun with what its scheduler reports at each moment. It reads its events
// from events, what is known of a job from job?name=, and itself anew when there is a newer page, all relative to its own
// address. number is that of this page; later ones have greater ones.
func WriteLive(w io.Writer, r *Run, number int) error {
	data := r.pack()
	data.value("live", number)
	if r.hasPlugins() {
		data.value("noForecast", "There is no forecast here: a policy runs in its own process, and a scheduler forecasts only with built-in policies. Use quartet forecast.")
	}
	p := r.page()
	p.Connects = true
	now := []section{
		{ID: "now", Title: "Now", Plots: []string{"state"}},
		{ID: "nodes", Title: "Nodes now", Plots: []string{"nodetable"}},
		{ID: "jobs", Title: "Jobs now", Filter: true, Plots: []string{"jobtable"}},
	}
	p.Sections = append(now[:1:1], append(p.Sections, now[1:]...)...)
	if len(r.Jobs.name) == 0 {
		p.Sections = append(p.Sections, section{ID: "job", Title: "One job", Search: true})
	}
	return p.write(w, data, dataScript, figuresScript, timelineScript, runScript, liveScript, startScript)
}

// hasPlugins reports whether a policy of the config in force lives in a process of its own.
func (r *Run) hasPlugins() bool {
	type policy struct{ Plugin yaml.Node }
	var config struct {
		Pipeline struct {
			Admission             []policy
			Allocation, Placement policy
			Elasticity            struct{ Job, Cluster policy }
		}
	}
	if yaml.Unmarshal([]byte(r.Manifest.Config), &config) != nil { // of a config that cannot be read nothing is told
		return false
	}
	p := &config.Pipeline
	return slices.ContainsFunc(append(p.Admission, p.Allocation, p.Placement, p.Elasticity.Job, p.Elasticity.Cluster), func(s policy) bool { return !s.Plugin.IsZero() })
}

// FactsOf reads of a run what an index shows, from its summary alone.
func FactsOf(dir string) [4]string {
	f, err := inputfile.Open(filepath.Join(dir, "summary.json"))
	if err != nil {
		return [4]string{}
	}
	s := &metrics.Summary{}
	if err := errors.Join(readJSON(io.LimitReader(f, largestFile), s), f.Close()); err != nil {
		return [4]string{}
	}
	return [4]string{s.Components.Allocation, digits(float64(s.Jobs.Submitted)), span(float64(s.JCTSeconds.Mean)), percent(float64(s.UtilizationRatio))}
}

// A Document is what is reported on.
type Document interface {
	// Write writes the page, in HTML.
	Write(w io.Writer) error
	Notes() []string   // what is wrong with it, a sentence each
	Figures() []Figure // figures of the page, as files for papers
}

// Write writes the page.
func (r *Run) Write(w io.Writer) error { return WriteRun(w, r) }

// Write writes the page.
func (s *Study) Write(w io.Writer) error { return WriteStudy(w, s) }

// ErrNotEnded reports a study without tables.
var ErrNotEnded = errors.New("the study has not ended: it has no " + runsFile + " yet")

// Read reads the run or the study in a folder. told is what the scheduler of an unfinished run answered; nil when there is none.
func Read(dir string, told *SoFar) (Document, error) {
	if IsStudy(dir) {
		return ReadStudy(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "study.yaml")); err == nil {
		return nil, ErrNotEnded
	}
	if told == nil {
		return ReadRun(dir)
	}
	return ReadRunSoFar(dir, told)
}
