//go:build linux

package kube

import (
	"errors"
	"log/slog"
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
