//go:build linux

package kube

import (
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/syncbuffer"
)

// What client-go logs stands in the log of the scheduler, in its format.
func TestLogOfTheClient(t *testing.T) {
	var out syncbuffer.Buffer
	o := &Opener{config: Config{Kubeconfig: filepath.Join(t.TempDir(), "none")}, log: slog.New(slog.NewJSONHandler(&out, nil)), clock: realClock{}}
	t.Cleanup(klog.ClearLogger)
	if _, err := o.Open(t.Context(), &core.Cluster{}, &workload.Workload{Open: true}); err == nil {
		t.Fatal("it opened a cluster that is not there")
	}
	klog.ErrorS(errors.New("cut"), "watch ended", "of", "pods")
	klog.Flush()
	if got := out.String(); !strings.Contains(got, `"level":"ERROR","msg":"watch ended","from":"client-go"`) || !strings.Contains(got, `"err":"cut"`) {
		t.Errorf("logged %q", got)
	}
}

// A watch that does not begin is logged, and a scheduler that was refused goes on when it is let.
func TestWatchThatIsRefused(t *testing.T) {
	r := newRig(t, sharedOrStandIn(t))
	var out syncbuffer.Buffer
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(&out, nil)))
	t.Cleanup(klog.ClearLogger)
	f := &refusing{path: "/api/v1/nodes"}
	f.times.Store(2)
	s := r.schedule(func(rt http.RoundTripper) http.RoundTripper {
		f.RoundTripper = rt
		return f
	})
	s.hears("node_added b")
	if got := out.String(); !strings.Contains(got, "*v1.Node") || !strings.Contains(got, "connection refused") {
		t.Errorf("logged %q", got)
	}
}
