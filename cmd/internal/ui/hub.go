package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core/control"
)

// A Watch is the source of a run that goes on.
type Watch interface {
	State(ctx context.Context) (*State, error)
	Job(ctx context.Context, name string) (*Told, error)
}

// State is what a scheduler says of its run at a moment.
type State struct {
	Now     float64  `json:"now"` // seconds
	Used    int      `json:"used"`
	Ready   int      `json:"ready"`
	Devices int      `json:"devices"`
	Nodes   [][5]any `json:"nodes"` // name, type, devices held, devices, health
	Jobs    [][5]any `json:"jobs"`  // name, state, reason, devices, submission
}

// Told is what is known of a job.
type Told struct {
	Error     string      `json:"error,omitempty"`
	Facts     [][2]string `json:"facts"`
	Decisions [][2]any    `json:"decisions"` // seconds, what
}

// Socket is where the scheduler of a run takes calls.
func Socket(dir string) string { return filepath.Join(dir, "live", control.SocketName) }

func escapedPath(name string) string { return url.PathEscape(name) }

// A state is asked for every so often while somebody looks, and so seldom that it takes no more than this part of the time: with it
// the scheduler gives at most a hundredth of a processor.
const (
	usualPace   = 2 * time.Second
	partOfTime  = 150
	longestPace = time.Minute
)

// A hub asks once for all who look on. Who reads slowly misses states, and gets the latest.
type hub struct {
	watch Watch

	lock    sync.Mutex
	viewers map[chan []byte]bool
	latest  []byte
	stop    context.CancelFunc // nil when nobody looks
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

func (h *hub) ask(ctx context.Context) {
	for {
		begun := time.Now()
		s, err := h.watch.State(ctx)
		took := time.Since(begun)
		if ctx.Err() != nil {
			return
		}
		h.tell(ctx, s, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(usualPace, partOfTime*took), longestPace)):
		}
	}
}

func (h *hub) tell(ctx context.Context, s *State, err error) {
	event, what := "", any(s)
	if err != nil {
		event, what = "event: ended\n", err.Error()
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
