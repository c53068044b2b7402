package exposition

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quartet-sched/quartet/core/metrics"
)

// Source is what is exposed. Log may be nil.
type Source struct {
	Snapshot func() *metrics.Snapshot // called from any goroutine
	Health   *Health                  // readiness of the scheduler
	Build    Build                    // what the program was built from
	Log      *slog.Logger             // takes failures to answer
}

// Build says what the program was built from.
type Build struct {
	Version, Commit, Go string // version of Quartet, commit of its repository, version of Go
}

// scrapesAtOnce bounds what impatient clients cost.
const scrapesAtOnce = 4

// NewHandler serves /metrics, /healthz and /readyz. Nothing can be changed through it.
func NewHandler(s Source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister( // they differ in every name
		collector{s},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	options := promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce, EnableOpenMetrics: true}
	if s.Log != nil {
		options.ErrorLog = slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.Health.onceReady(promhttp.HandlerFor(registry, options)))
	mux.HandleFunc("GET /healthz", answer(s.Health.Alive))
	mux.HandleFunc("GET /readyz", answer(s.Health.readiness))
	return mux
}

// onceReady serves nothing while rounds are replayed: counters would fall and rise again.
func (h *Health) onceReady(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.replayed(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answer is "ok", or 503 with what is wrong.
func answer(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}
