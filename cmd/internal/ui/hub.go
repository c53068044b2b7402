package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/lab/report"
)

// A Watch is the source of a run that goes on.
type Watch interface {
	// State asks for the jobs that have not ended, and for the nodes.
	State(ctx context.Context) (*State, error)
	// Job asks for what `quartet explain` shows of a job, by its name.
	Job(ctx context.Context, name string) (*Details, error)
	// SoFar asks for the files that are written when the run ends, as of now.
	SoFar(ctx context.Context) (*report.SoFar, error)
}

// State is what a scheduler says of its run at a moment.
type State struct {
	Now     float64  `json:"now"`     // moment in seconds of the run
	Used    int      `json:"used"`    // devices that jobs hold
	Ready   int      `json:"ready"`   // devices of ready nodes
	Devices int      `json:"devices"` // devices of all nodes
	Nodes   [][5]any `json:"nodes"`   // name, type, devices held, devices, health
	Jobs    [][6]any `json:"jobs"`    // name, state, reason, devices, submission, what is expected of it
	Page    int      `json:"page"`    // number of the page that can be had

	Foresight string `json:"foresight,omitempty"` // how to take what is expected of jobs; empty where nothing is of any
}

// Details is what is known of a job.
type Details struct {
	Error     string      `json:"error,omitempty"` // why nothing is known; empty where something is
	Facts     [][2]string `json:"facts"`           // name and value
	Decisions [][2]any    `json:"decisions"`       // moment in seconds, and what was decided
}

// isLive reports whether the scheduler of a folder takes calls. One that ends removes its socket when its results are written.
func isLive(dir string) bool { return hasSocket(dir) && !wasKilled(dir) }

func hasSocket(dir string) bool {
	socket, err := os.Stat(Socket(dir))
	return err == nil && socket.Mode()&os.ModeSocket != 0
}

// wasKilled reports whether the socket of a scheduler is there and nobody listens: one that is killed leaves it.
func wasKilled(dir string) bool {
	if !hasSocket(dir) {
		return false
	}
	c, err := net.DialTimeout("unix", Socket(dir), answersWithin)
	if err == nil {
		_ = c.Close() // nothing was asked
	}
	return errors.Is(err, syscall.ECONNREFUSED) // another error, such as that of a long path, says nothing of the scheduler
}

// answersWithin is how long a connection to a scheduler on this machine may take.
const answersWithin = time.Second

// Socket is where the scheduler of a run takes calls.
func Socket(dir string) string { return filepath.Join(dir, "live", control.SocketName) }

func escapedPath(name string) string { return url.PathEscape(name) }

// A state is asked for every so often while somebody looks, and so seldom that answers take no more than this part of the time: with
// it the scheduler gives at most a hundredth of a processor.
const (
	usualPace   = 2 * time.Second
	partOfTime  = 150
	longestPace = time.Minute
)

// A page is made anew after a while, if somebody looks, and so seldom that to make it takes no more than this part of the time.
const (
	usualPagePace = 5 * time.Second
	partOfPage    = 20
)

// paces are how often at most a state is asked for, and a page is made.
type paces struct{ state, page time.Duration }

// A hub asks once for all who look on. Who reads slowly misses states, and gets the latest.
type hub struct {
	watch Watch
	dir   string
	paces paces

	lock    sync.Mutex
	viewers map[chan []byte]bool
	latest  []byte
	stop    context.CancelFunc // nil when nobody looks
	asked   time.Duration      // how long answers took since the last pause
	number  int                // of the page; 0 before the first
	due     time.Time          // when another may be made

	making sync.Mutex
	page   []byte
}

// live is the page of the run as it is, or was a moment ago.
func (h *hub) live(ctx context.Context) ([]byte, error) {
	h.making.Lock()
	defer h.making.Unlock()
	h.lock.Lock()
	number, fresh := h.number+1, time.Now().Before(h.due)
	h.lock.Unlock()
	if h.page != nil && fresh {
		return h.page, nil
	}
	begun := time.Now()
	soFar, err := h.watch.SoFar(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		soFar = &report.SoFar{Trouble: err.Error()}
	}
	took := time.Since(begun)
	r, err := report.ReadRunSoFar(h.dir, soFar)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	if err := report.WriteLive(&page, r, number); err != nil {
		return nil, err
	}
	h.page = page.Bytes()
	h.lock.Lock()
	defer h.lock.Unlock()
	h.number, h.asked, h.due = number, h.asked+took, time.Now().Add(max(h.paces.page, partOfPage*time.Since(begun)))
	return h.page, nil
}

// newest is the number of the page that is there or would be made.
func (h *hub) newest() int {
	h.lock.Lock()
	defer h.lock.Unlock()
	if time.Now().Before(h.due) {
		return h.number
	}
	return h.number + 1
}

// pause is how long to wait before the next answer, and begins to count anew.
func (h *hub) pause(took time.Duration) time.Duration {
	h.lock.Lock()
	defer h.lock.Unlock()
	took += h.asked
	h.asked = 0
	return min(max(h.paces.state, partOfTime*took), longestPace)
}

func (h *hub) join() (news chan []byte, leave func()) {
	h.lock.Lock()
	defer h.lock.Unlock()
	news = make(chan []byte, 1)
	h.viewers[news] = true
	if h.latest != nil {
		news <- h.latest
	}
	if h.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.stop = stop
		go h.ask(ctx)
	}
	return news, func() {
		h.lock.Lock()
		defer h.lock.Unlock()
		delete(h.viewers, news)
		if len(h.viewers) == 0 && h.stop != nil {
			h.stop()
			h.stop, h.latest = nil, nil
		}
	}
}

// idle reports whether nobody looks.
func (h *hub) idle() bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return len(h.viewers) == 0
}

func (h *hub) ask(ctx context.Context) {
	for {
		begun := time.Now()
		s, err := h.watch.State(ctx)
		took := time.Since(begun)
		if ctx.Err() != nil {
			return
		}
		if s != nil {
			s.Page = h.newest()
		}
		h.publish(ctx, s, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.pause(took)):
		}
	}
}

func (h *hub) publish(ctx context.Context, s *State, err error) {
	event, what := "", any(s)
	if err != nil {
		if event, what = "event: silent\n", err.Error(); !isLive(h.dir) {
			event = "event: over\n"
		}
	}
	text, err := json.Marshal(what)
	if err != nil {
		return
	}
	message := fmt.Appendf(nil, "%sdata: %s\n\n", event, text)
	h.lock.Lock()
	defer h.lock.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.latest = message
	for news := range h.viewers {
		select {
		case <-news: // the one before was not taken
		default:
		}
		news <- message
	}
}
