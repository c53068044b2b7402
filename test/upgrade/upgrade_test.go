// Package upgrade holds that a run on real machines outlives the program that began it: it is begun by the program of one version, which is killed, and
// resumed by that of another.
package upgrade

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	on       = flag.Bool("upgrade", false, "build programs of earlier versions from the history, and resume their runs: minutes for each version that is not in .bin/upgrade")
	versions = flag.String("upgrade.versions", "", "commits or tags whose programs begin runs, separated by commas; left out: the last three tags, and the two that strangers used")
)

// Two versions that strangers used, and those that stand for the last three releases where there is no tag. The last of all of them is the previous one.
var (
	used     = []string{"72641718", "d34137dd"}
	released = []string{"900447af", "304ecef7", "64591ee1"}
)

const (
	current = "today"
	wait    = 2 * time.Minute // for what takes a second on an idle machine
)

// The run: a job that has ended, one on two devices that runs, a training that reports its progress, one that waits for two devices, one that is yet
// to come; one that is handed in, and one that is handed in and cancelled; a node that is drained.
const (
	config = `version: 1
name: up
cluster: {nodes: [{name: m, count: 2, accelerator: gpu, devices: 2}, {name: spare, count: 1, accelerator: other, devices: 1}]}
workload: {type: jobs, config: {path: jobs.yaml}}
round: {interval: 1s, on_events: true}
pipeline:
  admission: [{type: accept_all}]
  allocation: {type: fifo}
  placement: {type: consolidated}
  elasticity: {job: {type: fixed}, cluster: {type: none}}
backend: {type: local, config: {grace: 1s}}
output: {dir: runs, write: [jobs, rounds, decisions]}
`
	jobs = `version: 1
jobs:
  - {name: ended, command: [./job.sh, ended], accelerators: [gpu]}
  - {name: wide, command: [./job.sh, wide], accelerators: [gpu], replicas: 2, retries: 2}
  - {name: trains, command: [./job.sh, trains, TRAINER, -model, softmax, -batch, "256", -iterations, "400000000"], accelerators: [gpu], checkpoint: true}
  - {name: waits, command: [./job.sh, waits], accelerators: [gpu], replicas: 2}
  - {name: late, command: [./job.sh, late], accelerators: [gpu], submit: 25s, weight: 2}
`
	handed = `version: 1
jobs:
  - {name: handed, command: [./job.sh, handed], accelerators: [gpu]}
  - {name: gone, command: [./job.sh, gone], accelerators: [gpu]}
`
	// It notes that a replica starts, and ends when it is let go. What else it is given runs until it is stopped. Either ends when the folder is removed.
	script = `#!/bin/sh
name=$1
shift
echo start >> starts/$name
if [ $# -gt 0 ]; then
	"$@" &
	trap "kill $!; exit" TERM
	while [ -e starts ]; do sleep 0.05; done
	kill $!
fi
while [ -e starts ] && [ ! -e go/$name ] && [ ! -e go/all ]; do sleep 0.05; done
`
)

// replicas are the processes that each job starts in the whole run, if none is started twice. The job that is cancelled while it waits starts none.
var replicas = map[string]int{"ended": 1, "wide": 2, "trains": 1, "waits": 2, "late": 1, "handed": 1, "gone": 0}

func TestRunsOutliveTheirProgram(t *testing.T) {
	if !*on || runtime.GOOS != "linux" {
		t.Skip("builds programs of earlier versions, and needs Linux: make upgrade")
	}
	today := build(t, current, "HEAD")
	list := versionsOf(t)
	for _, version := range list {
		t.Run(version, func(t *testing.T) {
			before := build(t, version, version)
			t.Run("forward", func(t *testing.T) {
				t.Parallel()
				r := begin(t, before)
				r.resume(today)
				r.finish()
			})
			t.Run("back", func(t *testing.T) {
				t.Parallel()
				r := begin(t, today)
				if !r.goBack(before) {
					if version == list[len(list)-1] {
						t.Error("the previous version does not resume what today's program left")
					}
					t.Logf("%s does not resume what today's program left: %s", version, r.refusal)
				}
				r.resume(today)
				r.finish()
			})
			t.Run("forward and back", func(t *testing.T) {
				t.Parallel()
				r := begin(t, before)
				r.resume(today)
				r.kill()
				if !r.goBack(before) {
					t.Logf("%s does not resume its run once today's program did: %s", version, r.refusal)
				}
				r.resume(today)
				r.finish()
			})
		})
	}
}

// versionsOf lists the versions, the previous one last.
func versionsOf(t *testing.T) []string {
	if *versions != "" {
		return strings.Split(*versions, ",")
	}
	tags := released
	if out, err := exec.Command("git", "tag", "--sort=creatordate").Output(); err == nil {
		if found := strings.Fields(string(out)); len(found) > 0 {
			tags = found[max(len(found)-3, 0):]
		}
	} else {
		t.Logf("tags are not known: %v", err)
	}
	return slices.Concat(used, tags)
}

// programs are those of one version.
type programs struct{ version, quartet, trainer string }

// build builds the programs of a commit, which are kept in .bin/upgrade by its name. Those of today are built from what is there.
func build(t *testing.T, version, commit string) programs {
	t.Helper()
	root := output(t, "", "git", "rev-parse", "--show-toplevel")
	bin := filepath.Join(root, ".bin", "upgrade")
	source := root
	p := programs{version, filepath.Join(bin, "quartet-"+version), filepath.Join(bin, "trainer-"+version)}
	if version != current {
		if exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run() != nil {
			t.Skipf("the history does not hold %s: fetch it with its tags (git fetch --unshallow --tags)", commit)
		}
		if _, err := os.Stat(p.trainer); err == nil {
			return p
		}
		source = t.TempDir()
		output(t, root, "sh", "-c", fmt.Sprintf("git archive %s | tar -x -C %s", commit, source))
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, made := range [][2]string{{p.quartet, "./cmd/quartet"}, {p.trainer, "./examples/trainer"}} {
		output(t, source, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", made[0]+".new", made[1])
		if err := os.Rename(made[0]+".new", made[0]); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderrOf(err))
	}
	return strings.TrimSpace(string(out))
}

func stderrOf(err error) string {
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		return string(failed.Stderr)
	}
	return ""
}

// run is one run, whoever drives it.
type run struct {
	*testing.T
	dir       string
	by        programs
	scheduler *exec.Cmd
	ended     chan struct{} // closed when the scheduler has ended
	said      string        // file of what it puts out
	before    map[string]job
	refusal   string
}

// job is a line of quartet jobs.
type job struct {
	Job, State, Seats string
	Progress          float64
	Restarts          int
}

// begin has a program begin the run, and kills it in the midst.
func begin(t *testing.T, by programs) *run {
	dir, err := os.MkdirTemp("", "up") // that of the test may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	r := &run{T: t, dir: dir}
	t.Cleanup(r.clean)
	r.write("conf.yaml", config)
	r.write("jobs.yaml", strings.ReplaceAll(jobs, "TRAINER", by.trainer))
	r.write("handed.yaml", handed)
	r.write("job.sh", script)
	for _, folder := range []string{"starts", "go"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.write("go/ended", "")
	r.start(by)
	r.order("drain", "spare")
	r.until("the jobs run and are handed in", func(now map[string]job) bool {
		return now["ended"].State == "completed" && now["wide"].State == "running" && now["trains"].Progress > 0
	})
	r.order("submit", "handed.yaml")
	r.order("cancel", "gone")
	r.until("orders are carried out", func(now map[string]job) bool {
		return now["gone"].State == "cancelled" && now["handed"].State == "waiting"
	})
	r.kill()
	return r
}

func (r *run) write(name, text string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o755); err != nil { //nolint:gosec // one of them is a program
		r.Fatal(err)
	}
}

func (r *run) start(by programs) {
	r.Helper()
	r.by, r.ended = by, make(chan struct{})
	said, err := os.CreateTemp(r.dir, "said-"+by.version+"-")
	if err != nil {
		r.Fatal(err)
	}
	defer said.Close()
	r.said = said.Name()
	r.scheduler = exec.Command(by.quartet, "run", "-f", "conf.yaml")
	r.scheduler.Dir, r.scheduler.Stdout, r.scheduler.Stderr = r.dir, said, said
	if err := r.scheduler.Start(); err != nil {
		r.Fatal(err)
	}
	go func(c *exec.Cmd, ended chan struct{}) {
		_ = c.Wait()
		close(ended)
	}(r.scheduler, r.ended)
}

func (r *run) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// kill has the scheduler die at once. What it knew of the jobs is kept, to be compared.
func (r *run) kill() {
	r.Helper()
	if r.before, _ = r.list(); r.before == nil {
		r.Fatal("the scheduler does not answer\n" + r.text())
	}
	if err := r.scheduler.Process.Kill(); err != nil {
		r.Fatal(err)
	}
	<-r.ended
}

func (r *run) text() string {
	text, _ := os.ReadFile(r.said)
	return string(text)
}

func (r *run) order(args ...string) {
	r.Helper()
	output(r.T, r.dir, r.by.quartet, append(args, "--run", "up", "--wait", "60s")...)
}

// list asks the scheduler for its jobs; false when it does not answer.
func (r *run) list() (map[string]job, bool) {
	c := exec.Command(r.by.quartet, "jobs", "--all", "-o", "json", "--run", "up")
	c.Dir = r.dir
	text, err := c.Output()
	var rows []job
	if err != nil || json.Unmarshal(text, &rows) != nil {
		return nil, false
	}
	now := make(map[string]job, len(rows))
	for _, row := range rows {
		now[row.Job] = row
	}
	return now, true
}

// until waits until the jobs are as wanted.
func (r *run) until(what string, wanted func(now map[string]job) bool) {
	r.Helper()
	var last map[string]job
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		now, answered := r.list()
		if answered && wanted(now) {
			return
		}
		if last = now; r.hasEnded() {
			break
		}
	}
	r.Fatalf("%s: never %s: the jobs are %+v, and the scheduler said\n%s", r.by.version, what, last, r.text())
}

// resume has a program resume the run, and compares what it knows of the jobs.
func (r *run) resume(by programs) {
	r.Helper()
	r.start(by)
	if !r.matches() {
		r.Fatalf("%s does not resume the run: it said\n%s", by.version, r.text())
	}
}

// goBack reports whether a program resumes the run, and kills it then. One that refuses has left everything as it was.
func (r *run) goBack(by programs) bool {
	r.Helper()
	state := r.state()
	r.start(by)
	if r.matches() {
		r.kill()
		return true
	}
	if now := r.state(); !slices.Equal(state, now) {
		r.Errorf("%s refuses the run, and changes it: %v, before %v", by.version, now, state)
	}
	r.refusal = r.text()
	return false
}

// state is what there is of the jobs and their processes.
func (r *run) state() (list []string) {
	_ = filepath.WalkDir(filepath.Join(r.dir, "runs", "up", "live", "jobs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && !strings.Contains(path, "checkpoint") {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// matches waits until a scheduler that took the run over knows of the jobs what the one before knew; false when it refused to.
func (r *run) matches() bool {
	r.Helper()
	var other []string
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		now, answered := r.list()
		if r.hasEnded() {
			return false
		}
		if !answered {
			continue
		}
		if other = differences(r.before, now); len(other) == 0 {
			r.Logf("resumed by %s: %d jobs, 0 lost, 0 restarted", r.by.version, len(now))
			return true
		}
	}
	r.Errorf("resumed by %s: %s; it said\n%s", r.by.version, strings.Join(other, "; "), r.text())
	return true
}

// differences says of which jobs a scheduler does not know what the one before knew. One that was yet to come may have come, and one may have got further.
func differences(before, now map[string]job) (list []string) {
	for name, was := range before {
		is, known := now[name]
		came := was.State == "submitted" && is.State == "waiting"
		switch {
		case !known:
			list = append(list, name+" is lost")
		case is.Restarts != was.Restarts:
			list = append(list, name+" was restarted")
		case is.State != was.State && !came, is.Seats != was.Seats, is.Progress < was.Progress:
			list = append(list, fmt.Sprintf("%s is %+v, and was %+v", name, is, was))
		}
	}
	slices.Sort(list)
	return list
}

// finish lets the jobs end, and looks at what became of each.
func (r *run) finish() {
	r.Helper()
	r.write("go/all", "")
	r.until("all other jobs end", func(now map[string]job) bool {
		for name := range replicas {
			if name != "trains" && name != "gone" && now[name].State != "completed" {
				return false
			}
		}
		return true
	})
	r.order("cancel", "trains")
	<-r.ended
	file, err := os.Open(filepath.Join(r.dir, "runs", "up", "jobs.csv"))
	if err != nil {
		r.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != len(replicas)+1 {
		r.Fatalf("jobs.csv has %d lines, error %v, want one for each of %d jobs", len(rows), err, len(replicas))
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		name, restarts, outcome := row[column["name"]], row[column["restarts"]], row[column["outcome"]]
		if restarts != "0" || outcome != "completed" && name != "gone" && name != "trains" {
			r.Errorf("job %s is %s in the end, after %s restarts; the scheduler said\n%s", name, outcome, restarts, r.text())
		}
	}
	for name, want := range replicas {
		text, _ := os.ReadFile(filepath.Join(r.dir, "starts", name))
		if got := strings.Count(string(text), "start"); got != want {
			r.Errorf("job %s started %d processes in the whole run, want %d", name, got, want)
		}
	}
}

// clean ends what is left of the run: without their folder, jobs end by themselves.
func (r *run) clean() {
	if r.scheduler != nil && !r.hasEnded() {
		_ = r.scheduler.Process.Kill()
		<-r.ended
	}
	_ = os.RemoveAll(r.dir)
}
