// Package export writes the timeline of a run in the formats of other tools.
package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/timeline"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// Run is what the files of a run hold about its timeline.
type Run struct {
	Name  string                // name of the run
	Jobs  []metrics.Job         // jobs of the run, by JobID
	Stays []timeline.Stay       // who held which devices when
	Nodes []timeline.NodeHealth // health of nodes over time
	Usage []timeline.Usage      // empty when the run did not write it

	byJob map[core.JobID]int // index in Jobs
}

// Load reads the files of a run in a folder: timeline.csv, nodes.csv and jobs.csv, and usage.csv where there is one. What is
// wrong with them is a core.Diagnostics error.
func Load(dir string) (*Run, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, core.Diagnostics{{
			Position: core.Position{File: dir}, Summary: "is not the folder of a run", Hint: "a run leaves its files in DIR/NAME, such as runs/default",
		}}
	}
	r := &Run{Name: filepath.Base(filepath.Clean(dir))}
	for _, f := range []struct {
		file     string
		read     func(io.Reader, string) error
		optional bool
	}{
		{"timeline.csv", func(in io.Reader, path string) (err error) {
			r.Stays, err = timeline.ReadTimeline(in, path)
			return err
		}, false},
		{"nodes.csv", func(in io.Reader, path string) (err error) { r.Nodes, err = timeline.ReadNodes(in, path); return err }, false},
		{"jobs.csv", func(in io.Reader, path string) (err error) { r.Jobs, err = timeline.ReadJobs(in, path); return err }, false},
		{"usage.csv", func(in io.Reader, path string) (err error) { r.Usage, err = timeline.ReadUsage(in, path); return err }, true},
	} {
		path := filepath.Join(dir, f.file)
		in, err := inputfile.Open(path)
		if errors.Is(err, fs.ErrNotExist) && f.optional {
			continue
		}
		if err != nil {
			return nil, core.Diagnostics{{
				Position: core.Position{File: path}, Summary: "cannot be read: " + reason(err),
				Hint: "repeat the run with --set output.write=[jobs,timeline,usage]",
			}}
		}
		err = errors.Join(f.read(in, path), in.Close())
		if err != nil {
			return nil, err
		}
	}
	return r, r.check(filepath.Join(dir, "timeline.csv"))
}

// reason is an error without the path, which the message names already.
func reason(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// check refuses stays of jobs and on nodes that the other files do not have.
func (r *Run) check(file string) error {
	r.byJob = make(map[core.JobID]int, len(r.Jobs))
	for i := range r.Jobs {
		r.byJob[r.Jobs[i].ID] = i
	}
	devices := map[string]core.DeviceSet{}
	var problems core.Diagnostics
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if all := core.FirstDevices(n.Devices); devices[n.Node] == 0 {
			devices[n.Node] = all
		} else if devices[n.Node] != all {
			problems = append(problems, core.Diagnostic{Position: core.Position{File: file}, Summary: fmt.Sprintf("node %q has several numbers of devices in nodes.csv", n.Node)})
		}
	}
	for i := range r.Stays {
		s := &r.Stays[i]
		at := core.Position{File: file, Line: i + 2}
		if _, known := r.byJob[s.Job]; !known {
			problems = append(problems, core.Diagnostic{Position: at, Summary: fmt.Sprintf("job %d is not in jobs.csv", s.Job)})
		}
		for _, seat := range s.Seats {
			if seat.Devices&^devices[seat.Node] != 0 {
				problems = append(problems, core.Diagnostic{Position: at, Summary: fmt.Sprintf("node %q has no devices %v in nodes.csv", seat.Node, seat.Devices&^devices[seat.Node])})
			}
		}
	}
	return problems.Err()
}

// Parted counts the jobs whose devices came to less than whole ones, by their gpu_seconds.
func (r *Run) Parted() (n int) {
	held := r.heldByJob()
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.GPUSeconds < held[j.ID].deviceSeconds*(1-1e-9) {
			n++
		}
	}
	return n
}

func (r *Run) job(id core.JobID) *metrics.Job { return &r.Jobs[r.byJob[id]] }

// held is what a job got: the devices of its first stay, the seconds of all, and when the last one ended.
type held struct {
	first   *timeline.Stay
	seconds float64
	end     float64

	deviceSeconds float64 // of all, whole devices
}

func (r *Run) heldByJob() map[core.JobID]held {
	all := make(map[core.JobID]held, len(r.Jobs))
	for i := range r.Stays {
		s := &r.Stays[i]
		h := all[s.Job]
		if h.first == nil || s.Start < h.first.Start {
			h.first = s
		}
		h.seconds += s.End - s.Start
		h.deviceSeconds += s.DeviceSeconds()
		h.end = max(h.end, s.End)
		all[s.Job] = h
	}
	return all
}
