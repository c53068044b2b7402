package ui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/internal/browser"
	"github.com/quartet-sched/quartet/lab/report"
)

var look = flag.String("ui.look", "", "folder for pictures of the pages that tests open")

// hostile is a name that is markup.
const hostile = `</script><img src=x onerror=alert(1)>`

const (
	jobsHeader = "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome\n"
	ranJobs    = "0," + hostile + ",,0,10,,,10,2,0,100,unfinished\n1,second,bert,20,,,,,,0,0,unfinished\n"
	summary    = `{"schema": "quartet.summary/v1", "name": "one", "components": {"allocation": "allocation/fifo"}, "jobs": {"submitted": 2, "unfinished": 2},
		"jct_seconds": {"mean": null, "p50": null, "p90": null, "p99": null, "max": null}, "queueing_seconds": {"mean": 10, "p99": 10}, "gpu_hours": 0.0277777777777778}`
	manifest  = `{"name": "one", "config": "cluster:\n  nodes: [{name: a, count: 1, accelerator: t4, devices: 4}]\n", "inputs": [], "outputs": []}`
	rounds    = "round,time_s,active,waiting,running,devices_used,devices_usable,started,stopped,moved,finished,gap_ratio\n1,10,1,0,1,2,4,1,0,0,0,\n2,20,2,1,1,2,4,0,0,0,0,\n"
	decisions = `{"round":1,"t_s":10,"job":"` + hostile + `","action":"start","replicas":2,"seats":[["a","0,1"]]}
{"round":2,"t_s":20,"job":"second","verdict":"defer","reason":"waiting_for_devices","wanted":4,"available":2,"unit":"devices"}
`
)

// acting is a scheduler that says what a test wants.
type acting struct {
	lock  sync.Mutex
	now   float64
	jobs  string
	fails error
	old   bool // it knows of states only

	foresight string    // empty where it foresees nothing
	expected  [2]string // of the jobs
	listed    *[][6]any // in the place of the two jobs
}

func (a *acting) set(change func()) {
	a.lock.Lock()
	defer a.lock.Unlock()
	change()
}

func (a *acting) State(context.Context) (*State, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.fails != nil {
		return nil, a.fails
	}
	jobs := [][6]any{{hostile, "running", "", 2, 0, a.expected[0]}, {"second", "waiting", "waiting_for_devices", 0, 20, a.expected[1]}}
	if a.listed != nil {
		jobs = *a.listed
	}
	return &State{
		Now: a.now, Used: 2, Ready: 4, Devices: 4, Nodes: [][5]any{{"a", "t4", 2, 4, "ready"}}, Jobs: jobs, Foresight: a.foresight,
	}, nil
}

func (a *acting) Job(_ context.Context, name string) (*Details, error) {
	return &Details{Facts: [][2]string{{"state", "known as " + name}, {"position", "2, after " + hostile}}, Decisions: [][2]any{{1, hostile}}}, nil
}

func (a *acting) SoFar(context.Context) (*report.SoFar, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.old {
		return nil, errors.New("the scheduler is of an earlier version")
	}
	if a.fails != nil {
		return nil, a.fails
	}
	return &report.SoFar{NowSeconds: a.now, Files: map[string][]byte{"summary.json": []byte(summary), "jobs.csv": []byte(a.jobs)}}, nil
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// watching opens a page of a run that goes on, in a browser.
func watching(t *testing.T, a *acting) (p *browser.Page, dir string, end func()) {
	t.Helper()
	folder, err := os.MkdirTemp("", "ui") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	dir = filepath.Join(folder, "one")
	if err := os.MkdirAll(filepath.Dir(Socket(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{".manifest.json-1": manifest + "\n", ".rounds.csv-1": rounds, ".decisions.jsonl-1": decisions, ".jobs.csv-1": ""})
	socket, err := net.Listen("unix", Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	p = browser.Open(t)
	s, err := New(folder, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, func(string) Watch { return a })
	if err != nil {
		t.Fatal(err)
	}
	s.paces = paces{50 * time.Millisecond, 100 * time.Millisecond}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	s.hosts = []string{strings.TrimPrefix(server.URL, "http://")}
	p.Size(1400, 900, false)
	p.Go(s.Address())
	if ready := p.Go(server.URL + "/run/one/"); ready == "failed" {
		t.Fatal("the page failed")
	}
	return p, dir, func() { _ = socket.Close() }
}

func picture(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	if *look == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*look, name+".png"), p.Picture(true), 0o600); err != nil {
		t.Fatal(err)
	}
}

const said = "document.body.innerText"

// TestLivePageIsTheReportAsItBecomes follows a run from its beginning to its end.
func TestLivePageIsTheReportAsItBecomes(t *testing.T) {
	a := &acting{now: 30, jobs: jobsHeader + ranJobs}
	p, dir, end := watching(t, a)
	for _, want := range []string{"Key figures so far", "The run has not ended: this is what is known 30 s after it began.", "Device timeline", "Why jobs waited", "Wait for the first devices", "allocation/fifo"} {
		p.Await(want, fmt.Sprintf("%s.includes(%q)", said, want))
	}
	p.Await("the state", "document.getElementById('state').innerText.includes('2 of 4')")
	picture(t, p, "begins")

	// A job is chosen by a click, and stays chosen; charts stay what they are.
	p.Run("[...document.querySelectorAll('#jobtable button')].find(b => b.textContent === 'second').click(); window.kept = document.querySelector('#over figure'); document.querySelector('#over figure details').open = true; document.getElementById('closer').focus(); 0", nil)
	p.Await("what is known of a job", "document.getElementById('one').innerText.includes('known as second')")
	write(t, dir, map[string]string{
		".rounds.csv-1":      rounds + "3,40,3,1,2,3,4,1,0,0,0,\n",
		".decisions.jsonl-1": decisions + `{"round":3,"t_s":40,"job":"second","action":"start","replicas":1,"seats":[["a","2"]]}` + "\n" + `{"round":3,"t_s":4`,
	})
	a.set(func() { a.now, a.jobs = 50, jobsHeader+ranJobs+"2,third,,45,,,,,,0,0,unfinished\n" })
	p.Await("a later page", said+".includes('50 s after it began')")
	p.Await("the life of the job", "document.getElementById('one').innerText.includes('on devices')")
	for what, expression := range map[string]string{
		"another chart":     "window.kept.isConnected && document.querySelector('#over figure') === window.kept",
		"a table of now":    "window.kept.querySelector('details table').textContent.includes('50 s')",
		"the chosen job":    "document.querySelector('#one h3').textContent === 'second'",
		"the focus":         "document.activeElement.id === 'closer'",
		"no markup":         "document.images.length === 0",
		"one of each title": "new Set([...document.querySelectorAll('main h2')].map(h => h.id)).size === document.querySelectorAll('main h2').length",
	} {
		p.Await(what, expression)
	}
	p.Run("document.getElementById('search').value = 'third'; document.getElementById('search').dispatchEvent(new Event('input')); document.querySelector('#found button').click(); 0", nil)
	p.Await("a job that came later", "document.querySelector('#one h3').textContent === 'third' && document.getElementById('one').innerText.includes('known as third')")
	picture(t, p, "goes-on")
	for _, width := range []int{375, 1400} {
		p.Size(width, 900, width == 375)
		p.CheckAccess()
		p.Await(fmt.Sprintf("a page no wider than a window of %d pixels", width), fmt.Sprintf("document.documentElement.scrollWidth <= %d", width))
		picture(t, p, fmt.Sprint("goes-on-", width))
	}

	// Its scheduler is killed, and another takes over.
	a.set(func() { a.fails = errors.New("nobody answers") })
	p.Await("that it is silent", "!document.getElementById('failed').hidden && document.getElementById('failed').textContent.includes('has not ended, and its scheduler does not answer')")
	a.set(func() { a.fails, a.now = nil, 60 })
	p.Await("that it answers", "document.getElementById('failed').hidden && "+said+".includes('1 min after')||document.getElementById('failed').hidden && "+said+".includes('60 s after')")

	// It ends.
	for _, name := range []string{".rounds.csv-1", ".decisions.jsonl-1", ".jobs.csv-1", ".manifest.json-1"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, map[string]string{
		"manifest.json": manifest, "rounds.csv": rounds, "decisions.jsonl": decisions, "jobs.csv": jobsHeader + "0,first,,0,10,70,70,10,2,0,120,completed\n",
		"summary.json": strings.Replace(summary, `"submitted": 2, "unfinished": 2`, `"submitted": 1, "completed": 1`, 1),
	})
	end()
	a.set(func() { a.fails = errors.New("nobody answers") })
	p.Await("the report", "document.documentElement.dataset.ready && !"+said+".includes('has not ended') && "+said+".includes('Key figures') && !document.getElementById('now')")
	picture(t, p, "ended")
	if len(p.Console) > 0 {
		t.Errorf("console: %q", p.Console)
	}
	host := ""
	p.Run("location.origin", &host)
	for _, url := range p.Requests {
		if !strings.HasPrefix(url, host+"/") && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page asks for %q", url)
		}
	}
}

// TestLivePageOfLittle are runs of which little is known yet.
func TestLivePageOfLittle(t *testing.T) {
	t.Run("no job", func(t *testing.T) {
		a := &acting{jobs: jobsHeader}
		p, dir, _ := watching(t, a)
		p.Await("that there is no job", said+".includes('The run has no jobs')")
		write(t, dir, map[string]string{".rounds.csv-1": rounds, ".decisions.jsonl-1": decisions})
		a.set(func() { a.now, a.jobs = 30, jobsHeader+ranJobs })
		p.Await("the jobs", said+".includes('Why jobs waited') && document.querySelectorAll('#over figure').length > 0 && document.querySelector('#one h3')")
		if len(p.Console) > 0 {
			t.Errorf("console: %q", p.Console)
		}
	})
	t.Run("an earlier version", func(t *testing.T) {
		p, _, _ := watching(t, &acting{now: 30, old: true})
		p.Await("what is now", "document.getElementById('state').innerText.includes('2 of 4')")
		p.Await("the reason", said+".includes('The scheduler is of an earlier version')")
		p.Await("what is in the folder", "document.querySelectorAll('#over figure').length > 0 && document.getElementById('timeline')")
		if len(p.Console) > 0 {
			t.Errorf("console: %q", p.Console)
		}
	})
}

// TestLivePageForesees is what is expected of jobs: in words of the scheduler, as texts.
func TestLivePageForesees(t *testing.T) {
	const (
		table = "document.querySelector('#jobtable table')"
		note  = "document.getElementById('foresight')"
	)
	text := func(row, column int) string {
		return fmt.Sprintf("%s.querySelector('tbody tr:nth-child(%d) td:nth-child(%d)').textContent", table, row, column)
	}
	is := func(expression, want string) string { return fmt.Sprintf("%s === %q", expression, want) }
	heads := func(want string) string {
		return is(fmt.Sprintf("[...%s.querySelectorAll('th')].map(h => h.textContent).join()", table), want)
	}
	const before, with = "job,state,why,devices,submitted", "job,state,expected,why,devices,submitted"

	a := &acting{now: 30, jobs: jobsHeader + ranJobs}
	p, dir, _ := watching(t, a)
	p.Await("the list as before", heads(before))
	p.Await("no note", note+".hidden")

	// The page says why there is no forecast where the config shows it.
	write(t, dir, map[string]string{".manifest.json-1": strings.Replace(manifest, "cluster:", `pipeline: {allocation: {type: fifo, isolate: true, plugin: {on_failure: fail}}}\ncluster:`, 1) + "\n"})
	p.Await("the reason", "!"+note+".hidden && "+note+".textContent.includes('a policy runs in its own process')")
	p.Await("the list as before", heads(before))
	none := [][6]any{}
	a.set(func() { a.listed = &none })
	p.Await("a list without jobs", heads(before)+" && !"+table+".querySelector('tbody tr') && "+note+".hidden")
	picture(t, p, "foresees-no-job")

	// What a scheduler foresees comes, also with another answer than the config lets expect.
	a.set(func() {
		a.listed, a.expected, a.foresight = nil, [2]string{"end in 5m 00s or later", "start in 12.0 s to 1m 30s"}, "Forecast by simulation. 80 % intervals."
	})
	p.Await("a column", heads(with))
	p.Await("what is expected", is(text(1, 3), "end in 5m 00s or later")+" && "+is(text(2, 3), "start in 12.0 s to 1m 30s"))
	p.Await("how to take it", is(note+".textContent", "Forecast by simulation. 80 % intervals.")+" && !"+note+".hidden")

	// A list in use keeps its rows, and what is expected goes on.
	p.Run("window.kept = "+table+"; "+table+".querySelector('tbody tr:nth-child(2) button').focus(); document.activeElement.click(); 0", nil)
	p.Await("who is in front", "document.getElementById('one').innerText.includes('2, after "+strings.ReplaceAll(hostile, "</script>", "<\\/script>")+"')")
	a.set(func() {
		a.expected, a.foresight = [2]string{hostile, "start by now"}, "Forecast by simulation, made 7m 00s ago. 80 % intervals."
	})
	p.Await("what is expected later", is(text(1, 3), hostile)+" && "+is(text(2, 3), "start by now")+" && "+note+".textContent.includes('7m 00s ago')")
	p.Await("the list and the focus", "window.kept === "+table+" && document.activeElement.textContent === 'second'")
	left := [][6]any{{hostile, "waiting", "", 0, 0, "unknown"}, {"third", "waiting", "", 0, 40, ""}}
	a.set(func() { a.listed = &left })
	p.Await("what became of them", is(text(1, 3), "unknown")+" && "+is(text(2, 2), "has ended")+" && "+is(text(2, 3), ""))
	a.set(func() { a.listed, a.foresight = &none, "" })
	p.Await("that all have ended", is(text(1, 2), "has ended")+" && "+note+".hidden")
	p.Run("document.activeElement.blur(); 0", nil)
	a.set(func() {
		a.listed, a.expected, a.foresight = nil, [2]string{"end in 5m 00s to 48h 00m", "unknown"}, "Forecast by simulation, made 7m 00s ago. 80 % intervals."
	})
	p.Await("a list of now", heads(with)+" && "+is(text(2, 3), "unknown")+" && window.kept !== "+table)

	for name, size := range map[string]struct {
		width, height int
		dark          bool
	}{"wide": {1400, 900, false}, "phone": {375, 800, false}, "dark": {1400, 900, true}, "huge": {3840, 2160, false}} {
		p.Size(size.width, size.height, size.dark)
		p.CheckAccess()
		p.Await("a page no wider than its window, "+name, fmt.Sprintf("document.documentElement.scrollWidth <= %d && document.images.length === 0", size.width))
		picture(t, p, "foresees-"+name)
	}
	if len(p.Console) > 0 {
		t.Errorf("console: %q", p.Console)
	}
}
