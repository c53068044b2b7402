// Command results measures every reproduction again and writes the tables of docs/results.md: what stands between
// <!-- table NAME --> and <!-- end --> there is replaced, the words around it stay.
//
// Usage: go run ./tools/results -quartet PATH [-write docs/results.md], with QUARTET_DATA set.
package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	quartet := flag.String("quartet", "quartet", "the binary to measure")
	document := flag.String("write", "docs/results.md", "the document to write into")
	flag.Parse()
	data := os.Getenv("QUARTET_DATA")
	if data == "" {
		fmt.Fprintln(os.Stderr, "QUARTET_DATA is not set: it names the folder that holds data/ and reference/")
		os.Exit(2)
	}
	out, err := os.MkdirTemp("", "quartet-results")
	if err == nil {
		defer os.RemoveAll(out)
		err = (&bench{quartet: *quartet, data: data, out: out}).write(*document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tables lists what the document may ask for.
var tables = map[string]func(*bench) ([][]string, error){
	"pollux-baselines": (*bench).polluxBaselines,
	"blox":             (*bench).blox,
	"tiresias":         (*bench).tiresias,
	"semantics":        (*bench).semantics,
	"pollux":           (*bench).pollux,
	"gavel-small":      (*bench).gavelSmall,
	"gavel-continuous": (*bench).gavelContinuous,
	"gavel-spare":      (*bench).gavelSpare,
	"gavel-floor":      (*bench).gavelFloor,
	"gavel-makespan":   (*bench).gavelMakespan,
}

type bench struct{ quartet, data, out string }

var block = regexp.MustCompile(`(?s)<!-- table (\S+) -->\n.*?<!-- end -->`)

func (b *bench) write(document string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	var failed error
	text = block.ReplaceAllFunc(text, func(old []byte) []byte {
		name := string(block.FindSubmatch(old)[1])
		measure, known := tables[name]
		if !known {
			failed = fmt.Errorf("%s asks for unknown table %q", document, name)
			return old
		}
		rows, err := measure(b)
		if err != nil {
			failed = fmt.Errorf("table %q: %w", name, err)
			return old
		}
		return fmt.Appendf(nil, "<!-- table %s -->\n%s<!-- end -->", name, markdown(rows))
	})
	if failed != nil {
		return failed
	}
	return os.WriteFile(document, text, 0o644)
}

func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

// outcome is what one run came to.
type outcome struct {
	Name string `json:"name"`
	JCT  struct {
		Mean, P50, P99, Max float64
	} `json:"jct_seconds"`
	Restarts struct {
		Mean float64
	} `json:"restarts"`
	Queueing struct {
		Mean float64
	} `json:"queueing_seconds"`
	Makespan    float64             `json:"makespan_seconds"`
	Utilization float64             `json:"utilization_ratio"`
	Preemptions int                 `json:"preemptions"`
	jobs        map[string][]string // rows of jobs.csv by name
	cpu         time.Duration       // that the run took
}

// simulate runs a shipped composition.
func (b *bench) simulate(config string, sets ...string) (*outcome, error) {
	args := []string{"simulate", "-q", "-o", "json", "--out", b.out, "-f", filepath.Join("configs", "papers", config)}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	var stderr bytes.Buffer
	command := exec.Command(b.quartet, args...)
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", args, err, stderr.String())
	}
	var o outcome
	if err := json.Unmarshal(stdout, &o); err != nil {
		return nil, err
	}
	o.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	o.jobs, err = readRows(filepath.Join(b.out, o.Name, "jobs.csv"), 1)
	return &o, err
}

// readRows reads a CSV file without its header, by the value in a column.
func readRows(path string, key int) (map[string][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	rows := make(map[string][]string, len(records))
	for _, record := range records[1:] {
		rows[record[key]] = record
	}
	return rows, nil
}

// The columns of jobs.csv and of the references that are compared.
const (
	jobFirstStart, jobFinish, jobJCT = 4, 5, 6
	polluxJCT                        = 4
	bloxFirstRun, bloxCompletion     = 5, 6
)

func (b *bench) polluxBaselines() ([][]string, error) {
	rows := [][]string{{"policy", "workload", "published mean JCT s", "ours", "difference", "jobs equal"}}
	for _, policy := range []string{"tiresias", "optimus"} {
		for _, w := range []struct{ load, file string }{
			{"", "1"}, {"", "2"}, {"", "3"}, {"", "4"}, {"", "6"}, {"-0.5", "1"}, {"-0.5", "2"}, {"-0.5", "3"}, {"-0.5", "4"},
		} {
			file := "workload-" + w.file + ".csv"
			want, err := readRows(filepath.Join(b.data, "reference", "pollux-osdi21", policy+w.load, file), 0)
			if err != nil {
				return nil, err
			}
			got, err := b.simulate("pollux-osdi21/"+policy+".yaml",
				"workload.config.path="+filepath.Join(b.data, "data", "pollux-osdi21", "workloads"+w.load, file))
			if err != nil {
				return nil, err
			}
			equal, sum := 0, 0.0
			for name, row := range want {
				published, err := strconv.ParseFloat(row[polluxJCT], 64)
				if err != nil {
					return nil, err
				}
				sum += published
				if job := got.jobs[name]; job != nil && job[jobJCT] == row[polluxJCT] {
					equal++
				}
			}
			mean := sum / float64(len(want))
			load := "1.0x"
			if w.load != "" {
				load = "0.5x"
			}
			rows = append(rows, []string{
				policy, load + " " + w.file, decimal(mean), decimal(got.JCT.Mean), percent(got.JCT.Mean, mean), fmt.Sprintf("%d of %d", equal, len(want)),
			})
		}
	}
	return rows, nil
}

func (b *bench) blox() ([][]string, error) {
	rows := [][]string{{"run", "placement", "mean JCT s", "makespan s", "preemptions", "completions that differ", "first runs that differ"}}
	for _, run := range []struct{ name, config, fit string }{
		{"s500_Las", "las", "prefix_sum"}, {"s1000_Fifo", "fifo", "prefix_sum"}, {"s1000_Las", "las", "prefix_sum"},
		{"s1000_Srtf", "srtf", "prefix_sum"}, {"m500_Fifo", "fifo", "prefix_sum"}, {"m500fix_Fifo", "fifo", "scattered"},
		{"m500fix_Las", "las", "scattered"}, {"m500fix_Srtf", "srtf", "scattered"},
	} {
		path := filepath.Join(b.data, "reference", "blox", "ref_"+run.name+".csv")
		want, err := readRows(path, 0)
		if err != nil {
			return nil, err
		}
		got, err := b.simulate("blox-eurosys24/"+run.config+".yaml", "workload.config.path="+path, "pipeline.placement.config.fit="+run.fit)
		if err != nil {
			return nil, err
		}
		completions, firstRuns := 0, 0
		for id, row := range want {
			job := got.jobs[id]
			if job == nil || !same(job[jobFinish], row[bloxCompletion], 0) {
				completions++
			}
			if job == nil || !same(job[jobFirstStart], row[bloxFirstRun], 300) { // Blox sees a job run one round late
				firstRuns++
			}
		}
		rows = append(rows, []string{
			run.name, run.fit, decimal(got.JCT.Mean), decimal(got.Makespan), strconv.Itoa(got.Preemptions), strconv.Itoa(completions), strconv.Itoa(firstRuns),
		})
	}
	return rows, nil
}

func (b *bench) tiresias() ([][]string, error) {
	rows := [][]string{{"policy", "published mean JCT s", "ours", "difference"}}
	for _, run := range []struct {
		config    string
		published float64
	}{{"fifo", 1556.5}, {"dlas", 715.3}, {"shortest", 519.9}} {
		got, err := b.simulate("tiresias-nsdi19/"+run.config+".yaml", "workload.config.path="+filepath.Join(b.data, "data", "tiresias", "60_job.csv"))
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{run.config, decimal(run.published), decimal(got.JCT.Mean), percent(got.JCT.Mean, run.published)})
	}
	return rows, nil
}

// semantics runs policies under the published semantics, and then takes these away one after another.
func (b *bench) semantics() ([][]string, error) {
	rows := [][]string{{"composition", "semantics", "mean JCT s", "queueing s", "makespan s", "JCT against published"}}
	blox := filepath.Join(b.data, "reference", "blox", "ref_s1000_Las.csv")
	pollux := filepath.Join(b.data, "data", "pollux-osdi21", "workloads", "workload-6.csv")
	type step struct{ label, set string }
	for _, c := range []struct {
		label, config, path string
		steps               []step
	}{
		{"Blox LAS, s1000", "blox-eurosys24/las.yaml", blox, []step{
			{"published", ""},
			{"completions at their moment", "backend.config.publication.completion=exact"},
			{"and consolidated placement", "pipeline={allocation: {type: las, config: {service: wall_time}}, placement: {type: consolidated}}"},
			{"and rounds on events", "round.on_events=true"},
		}},
		{"Pollux Tiresias, workload 6", "pollux-osdi21/tiresias.yaml", pollux, []step{
			{"published", ""},
			{"epochs end at their moment", "backend.config.publication.epoch_ends=exact"},
			{"and event-driven progress", "backend.config.publication.progress=exact"},
			{"and a first round at second 0", "backend.config.publication.first_round=start"},
			{"and rounds on events", "round.on_events=true"},
		}},
		{"Pollux Optimus, workload 6", "pollux-osdi21/optimus.yaml", pollux, []step{
			{"published", ""},
			{"remaining steps without the epoch too many", "workload.config.remaining=exact"},
			{"and epochs end at their moment", "backend.config.publication.epoch_ends=exact"},
			{"and event-driven progress", "backend.config.publication={first_round: one_interval}"},
			{"and a first round at second 0", "backend.config.publication={first_round: start}"},
		}},
	} {
		sets := []string{"workload.config.path=" + c.path}
		published := 0.0
		for _, s := range c.steps {
			if s.set != "" {
				sets = append(sets, s.set)
			}
			got, err := b.simulate(c.config, sets...)
			if err != nil {
				return nil, err
			}
			if published == 0 {
				published = got.JCT.Mean
			}
			rows = append(rows, []string{
				c.label, s.label, decimal(got.JCT.Mean), decimal(got.Queueing.Mean), decimal(got.Makespan), percent(got.JCT.Mean, published),
			})
		}
	}
	return rows, nil
}

// pollux runs the exact search with the published objective and with ours on the workloads given, against the published
// figures of the genetic search.
func (b *bench) pollux() ([][]string, error) {
	rows := [][]string{{"composition", "load", "mean JCT s by workload", "mean JCT s", "against published", "p99", "makespan"}}
	text, err := os.ReadFile(filepath.Join(b.data, "reference", "pollux-osdi21", "published.json"))
	if err != nil {
		return nil, err
	}
	type figures struct{ Avg, P99, Makespan float64 }
	var published map[string]map[string]struct{ Workloads map[string]figures }
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, err
	}
	unknown := []string{
		"pipeline.allocation.config.weights=attained", "pipeline.allocation.config.reference=one",
		"pipeline.allocation.config.horizon=250s", "pipeline.elasticity.job.config.declared_work=false",
	}
	for _, c := range []struct {
		label, config string
		sets          []string
		load          string
	}{
		{"pollux-exact, published objective", "pollux-exact", nil, "1.0"},
		{"pollux-best", "pollux-best", nil, "1.0"},
		{"pollux-guarded", "pollux-guarded", nil, "1.0"},
		{"pollux-best, epochs unknown", "pollux-best", unknown, "1.0"},
		{"pollux-best, the truth known", "pollux-best", []string{"pipeline.elasticity.job.config.knowledge=oracle"}, "1.0"},
		{"pollux-exact, published objective", "pollux-exact", nil, "0.5"},
		{"pollux-best", "pollux-best", nil, "0.5"},
	} {
		folder, workloads := "workloads", []string{"1", "2", "3", "4", "6"}
		if c.load == "0.5" {
			folder, workloads = "workloads-0.5", workloads[:4]
		}
		var means []string
		var ours, theirs figures
		for _, n := range workloads {
			path := filepath.Join(b.data, "data", "pollux-osdi21", folder, "workload-"+n+".csv")
			got, err := b.simulate("pollux-osdi21/"+c.config+".yaml", append([]string{"workload.config.path=" + path}, c.sets...)...)
			if err != nil {
				return nil, err
			}
			want := published["results-jobload"]["pollux-"+c.load].Workloads["workload-"+n]
			p99, last, err := got.tail()
			if err != nil {
				return nil, err
			}
			means = append(means, decimal(got.JCT.Mean))
			k := float64(len(workloads))
			ours.Avg, ours.P99, ours.Makespan = ours.Avg+got.JCT.Mean/k, ours.P99+p99/k, ours.Makespan+last/k
			theirs.Avg, theirs.P99, theirs.Makespan = theirs.Avg+want.Avg/k, theirs.P99+want.P99/k, theirs.Makespan+want.Makespan/k
		}
		rows = append(rows, []string{
			c.label, c.load + "x", strings.Join(means, ", "), decimal(ours.Avg), percent(ours.Avg, theirs.Avg), percent(ours.P99, theirs.P99), percent(ours.Makespan, theirs.Makespan),
		})
	}
	return rows, nil
}

// tail is the 99th percentile of the JCT as the published figures take it, by linear interpolation, and the moment at
// which the last job finished.
func (o *outcome) tail() (p99, last float64, err error) {
	var times []float64
	for _, job := range o.jobs {
		jct, errJCT := strconv.ParseFloat(job[jobJCT], 64)
		finish, errFinish := strconv.ParseFloat(job[jobFinish], 64)
		if err := errors.Join(errJCT, errFinish); err != nil {
			return 0, 0, err
		}
		times, last = append(times, jct), max(last, finish)
	}
	slices.Sort(times)
	at := 0.99 * float64(len(times)-1)
	below := int(at)
	above := min(below+1, len(times)-1)
	return times[below] + (times[above]-times[below])*(at-float64(below)), last, nil
}

func same(got, want string, offset float64) bool {
	g, errGot := strconv.ParseFloat(got, 64)
	w, errWant := strconv.ParseFloat(want, 64)
	return errGot == nil && errWant == nil && g+offset == w
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func percent(got, want float64) string { return fmt.Sprintf("%+.3f %%", 100*(got/want-1)) }
