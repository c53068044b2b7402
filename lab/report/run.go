package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// A Run is what the files in the folder of a run hold.
type Run struct {
	Dir      string           // as it was given
	Summary  *metrics.Summary // its summary.json; nil when it cannot be read
	Manifest Manifest         // what its manifest.json says
	Problems []string         // what is missing or cannot be read, a sentence each
	Jobs     jobs             // rows of its jobs.csv
	Unended  bool             // it has not ended, or was killed

	now     float64 // seconds, of a run that goes on: as its scheduler told, or the last of its decisions; else NaN
	derived bool    // the jobs are those that the decisions name
	nojobs  bool    // it ended, and there is no jobs.csv

	nodes   []node
	rounds  *table
	usage   *table // nil when it was not written, as the rest
	rho     *table
	used    *table
	tenants *table
	trained *table
	paces   *table
	reports *table

	stays    []stay
	waits    []wait
	healths  []health
	tunes    []tune
	reported []metricSeries // what jobs reported, by job and metric
	metrics  []string       // that they reported
	exact    bool           // the stays are those of timeline.csv
	byName   map[string]int
}

// A Manifest is what a page shows of manifest.json.
type Manifest struct {
	Name        string   `json:"name"`        // name of the run
	Seed        uint64   `json:"seed"`        // seed of the run
	Quartet     string   `json:"quartet"`     // version of Quartet
	Commit      string   `json:"commit"`      // commit of the program
	Go          string   `json:"go"`          // version of Go
	Interrupted bool     `json:"interrupted"` // the run was stopped before its end
	Failed      string   `json:"failed"`      // error that ended the run; empty for none
	Config      string   `json:"config"`      // resolved config, as YAML
	Inputs      []Digest `json:"inputs"`      // digests of the files it read
	Outputs     []Digest `json:"outputs"`     // digests of the files it wrote
	Plugins     []Plugin `json:"plugins"`     // plugins that took part
}

// Plugin is a plugin that took part in a run.
type Plugin struct {
	Name    string // name of the plugin
	Version string // version it reports
	SHA256  string // SHA-256 of its binary, in hexadecimal
}

// Digest names a file and its content.
type Digest struct {
	File   string `json:"file"`   // name of the file
	SHA256 string `json:"sha256"` // SHA-256 of its content, in hexadecimal
}

// jobs are the columns of jobs.csv.
type jobs struct {
	id                                                              []int
	name, application, outcome                                      []string
	experiment                                                      []string // nil where no job is a trial
	submit, first, finish, jct, queueing, replicas, restarts, usage []float64

	// Of runs whose jobs share devices, nil where the run tells nothing of it: thousandths of a device, NaN for whole ones, seconds beside others, and
	// seconds that this cost.
	milli, shared, lost []float64
}

// onCPUs reports whether a job takes nothing of the devices that it is seated at.
func (j *jobs) onCPUs(row int) bool { return j.milli != nil && row < len(j.milli) && j.milli[row] == 0 }

func (j *jobs) countOnCPUs() (n int) {
	for row := range j.milli {
		if j.onCPUs(row) {
			n++
		}
	}
	return n
}

type node struct {
	name, accelerator string
	devices           int
}

// A tune is the batch of a job from a moment on.
type tune struct {
	job           int
	at            float64
	batch, passes int
}

// largestFile is the most that a file of a run may hold.
const largestFile = 4 << 30

// ReadRun reads the folder of a run. Files that are missing or broken are listed in Problems; an error means that there is no run.
func ReadRun(dir string) (*Run, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder of a run", dir)
	}
	return readRun(inputfile.Folder(dir), dir, nil)
}

// ReadRunFS is ReadRun of a file system that holds the files of one run.
func ReadRunFS(files fs.FS, dir string) (*Run, error) { return readRun(files, dir, nil) }

func readRun(files fs.FS, dir string, told *SoFar) (*Run, error) {
	r := &Run{Dir: dir, byName: map[string]int{}, rounds: &table{}, now: math.NaN()}
	from := r.open(files, told)
	found := 0
	read := func(name string, needed bool, parse func(io.Reader) error) {
		f, err := from.open(name)
		if errors.Is(err, fs.ErrNotExist) {
			if !r.Unended && (needed && !r.unwanted(name) || r.recorded(name) != "") {
				r.Problems = append(r.Problems, name+" is not there.")
			}
			return
		}
		if err == nil {
			in := &digested{in: io.LimitReader(f, largestFile), sum: sha256.New()}
			err = errors.Join(parse(in), f.Close())
			found++
			if what := in.changed(r.recorded(name)); what != "" {
				r.Problems = append(r.Problems, name+" "+what+".")
			}
		}
		if err != nil {
			r.Problems = append(r.Problems, fmt.Sprintf("%s cannot be read whole: %v.", name, err))
		}
	}
	columns := func(name string, needed bool, to **table) {
		read(name, needed, func(in io.Reader) error {
			t, err := readTable(in)
			*to = t
			r.inspect(name, t)
			return err
		})
	}
	var written, timeline, states *table
	read("manifest.json", true, func(in io.Reader) error { return readJSON(in, &r.Manifest) })
	read("summary.json", true, func(in io.Reader) error {
		s := &metrics.Summary{}
		if err := readJSON(in, s); err != nil {
			return err
		}
		r.Summary = s
		return nil
	})
	r.readNodes()
	columns("jobs.csv", true, &written)
	if written == nil {
		written, r.derived, r.nojobs = &table{}, r.Unended, !r.Unended
	}
	if err := r.takeJobs(written); err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("jobs.csv: %v.", err))
	}
	columns("rounds.csv", true, &r.rounds)
	read("decisions.jsonl", true, r.readDecisions)
	columns("timeline.csv", false, &timeline)
	if timeline != nil && !(r.Unended && len(r.stays) > 0) { // what goes on is written when it has ended
		if err := r.readTimeline(timeline); err != nil {
			r.Problems = append(r.Problems, fmt.Sprintf("timeline.csv: %v.", err))
		}
	}
	columns("nodes.csv", false, &states)
	if states != nil && !r.Unended {
		if err := r.readHealths(states); err != nil {
			r.Problems = append(r.Problems, fmt.Sprintf("nodes.csv: %v.", err))
		}
	}
	columns("usage.csv", false, &r.usage)
	columns("efficiency.csv", false, &r.paces)
	columns("fairness.csv", false, &r.rho)
	columns("accelerators.csv", false, &r.used)
	columns("tenants.csv", false, &r.tenants)
	columns("training.csv", false, &r.trained)
	columns("reports.csv", false, &r.reports)
	r.readReports()
	if what := r.contradiction(); what != "" {
		r.Problems = append(r.Problems, "summary.json "+what+".")
	}
	if found == 0 && !r.Unended {
		return nil, fmt.Errorf("%s holds no run: neither manifest.json nor jobs.csv is there", dir)
	}
	return r, nil
}

// unwanted reports whether a run that ended was told not to write a file: its manifest lists the others.
func (r *Run) unwanted(name string) bool {
	return slices.Contains(optionalFiles[:], name) && len(r.Manifest.Outputs) > 0 && r.recorded(name) == ""
}

// optionalFiles are those that every run writes unless its config leaves them out.
var optionalFiles = [...]string{"jobs.csv", "rounds.csv", "decisions.jsonl"}

func readJSON(in io.Reader, to any) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), to)
}

func (r *Run) takeJobs(t *table) error {
	var errs []error
	numbers := func(name string) []float64 {
		list, err := t.numbers(name)
		errs = append(errs, err)
		return list
	}
	r.Jobs = jobs{
		name: t.text("name"), application: t.text("application"), outcome: t.text("outcome"),
		submit: numbers("submit_s"), first: numbers("first_start_s"), finish: numbers("finish_s"), jct: numbers("jct_s"),
		queueing: numbers("queueing_s"), replicas: numbers("replicas_mean"), restarts: numbers("restarts"), usage: numbers("gpu_seconds"),
	}
	for _, c := range [...]struct {
		name string
		to   *[]float64
	}{{"share_milli", &r.Jobs.milli}, {"shared_s", &r.Jobs.shared}, {"lost_s", &r.Jobs.lost}} {
		if t.has(c.name) {
			*c.to = numbers(c.name)
		}
	}
	if t.has("experiment") {
		r.Jobs.experiment = t.text("experiment")
	}
	if t.has("mig_profile") {
		for _, profile := range t.text("mig_profile") {
			r.Jobs.milli = append(r.Jobs.milli, milliOf(profile))
		}
	}
	for _, id := range numbers("job") {
		r.Jobs.id = append(r.Jobs.id, int(zeroed(id)))
	}
	return errors.Join(errs...)
}

// milliOf is the compute of a slice in thousandths of the device: 0 of none, NaN of the whole device.
func milliOf(profile string) float64 {
	part := metrics.PartOfProfile(profile)
	if part == 1 {
		return math.NaN()
	}
	return part * 1000
}

// mostNodes is how many nodes a config may name before the page leaves them out.
const mostNodes = 1 << 16

// readNodes takes the nodes from the config of the manifest, named as the simulator names them.
func (r *Run) readNodes() {
	var config struct {
		Cluster struct {
			Nodes []struct {
				Name, Accelerator string
				Count, Devices    int
			}
		}
	}
	if err := yaml.Unmarshal([]byte(r.Manifest.Config), &config); err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("the config in manifest.json cannot be read: %v.", err))
		return
	}
	for _, group := range config.Cluster.Nodes {
		if group.Count > mostNodes-len(r.nodes) {
			r.Problems = append(r.Problems, fmt.Sprintf("The config has more than %d nodes; those without jobs are left out.", mostNodes))
		}
		for k := range min(group.Count, mostNodes-len(r.nodes)) {
			name := fmt.Sprintf("%s-%d", group.Name, k)
			if group.Count == 1 {
				name = group.Name
			}
			r.byName[name] = len(r.nodes)
			r.nodes = append(r.nodes, node{name, group.Accelerator, min(max(group.Devices, 0), 64)})
		}
	}
}

// node is the index of a node, which the config may not have named.
func (r *Run) node(name string) int {
	i, known := r.byName[name]
	if !known {
		i = len(r.nodes)
		r.byName[name] = i
		r.nodes = append(r.nodes, node{name: name, devices: 1})
	}
	return i
}

// Name is what the page calls the run.
func (r *Run) Name() string {
	switch {
	case r.Manifest.Name != "":
		return r.Manifest.Name
	case r.Summary != nil && r.Summary.Name != "":
		return r.Summary.Name
	default:
		return filepath.Base(r.Dir)
	}
}

// horizon is the last moment that the files tell of.
func (r *Run) horizon() float64 {
	last := 0.0
	for _, list := range [...][]float64{r.Jobs.submit, r.Jobs.finish} {
		for _, at := range list {
			if at > last {
				last = at
			}
		}
	}
	if at, err := r.rounds.numbers("time_s"); err == nil && len(at) > 0 && !math.IsNaN(at[len(at)-1]) {
		last = max(last, at[len(at)-1])
	}
	if r.now > last {
		last = r.now
	}
	return last
}
