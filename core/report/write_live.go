package report

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/quartet-sched/quartet/core/metrics"
)

// An Entry is a run or a study in the list of a folder.
type Entry struct {
	Name, Kind, Link, Live string // Live is the page of a run that goes on; empty for others
	Facts                  [4]string
}

// WriteIndex writes the page that lists the runs and studies of a folder.
func WriteIndex(w io.Writer, title string, entries []Entry) error {
	data := newPack()
	data.value("kind", "list")
	g := grid{Caption: counted(len(entries), "run") + " and studies", Head: []string{"name", "kind", "allocation", "jobs", "completion time, mean", "devices held"}}
	for _, e := range entries {
		row := []cell{{Text: e.Name, Link: e.Link}, {Text: e.Kind, Link: e.Live}}
		g.Rows = append(g.Rows, append(row, plain(e.Facts[:]...)...))
	}
	p := &page{Title: title, Sections: []section{{ID: "runs", Title: "Runs and studies", Filter: true, Tables: []grid{g}}}}
	if len(entries) == 0 {
		p.Sections = []section{{ID: "runs", Title: "Runs and studies", Text: []string{"There is none yet: quartet simulate makes a run."}}}
	}
	return p.write(w, data, dataScript, liveScript, startScript)
}

// WriteLive writes the page of a run that goes on. It reads its events from events, and what is known of a job from job?name=, both
// relative to its own address.
func WriteLive(w io.Writer, name string) error {
	data := newPack()
	data.value("kind", "live")
	p := &page{Title: name, Connects: true}
	p.Sections = []section{
		{ID: "now", Title: "Now", Plots: []string{"figures"}},
		{ID: "time", Title: "Over time", Text: []string{"Since this page was opened."}, Plots: []string{"over"}},
		{ID: "nodes", Title: "Nodes", Plots: []string{"nodetable"}},
		{ID: "job", Title: "Jobs", Search: true, Plots: []string{"jobtable"}},
	}
	return p.write(w, data, dataScript, liveScript, startScript)
}

// FactsOf reads of a run what an index tells, from its summary alone.
func FactsOf(dir string) [4]string {
	f, err := os.Open(filepath.Join(dir, "summary.json"))
	if err != nil {
		return [4]string{}
	}
	s := &metrics.Summary{}
	if err := errors.Join(readJSON(io.LimitReader(f, largestFile), s), f.Close()); err != nil {
		return [4]string{}
	}
	return [4]string{s.Components.Allocation, digits(float64(s.Jobs.Submitted)), span(float64(s.JCTSeconds.Mean)), percent(float64(s.UtilizationRatio))}
}

// Write writes the page of the run or the study in a folder.
func Write(w io.Writer, dir string) error {
	if IsStudy(dir) {
		s, err := ReadStudy(dir)
		if err != nil {
			return err
		}
		return WriteStudy(w, s)
	}
	r, err := ReadRun(dir)
	if err != nil {
		return err
	}
	return WriteRun(w, r)
}
