package operate

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/metrics/exposition"
)

// served serves the metrics of a run without rounds.
func served(t *testing.T, f *metricsFlags) (stop func(), stderr string, err error) {
	t.Helper()
	var log bytes.Buffer
	a, err := parsed(t, &log, "--log-level=info")
	if err != nil {
		t.Fatal(err)
	}
	live := metrics.NewLive(metrics.NewCollector(metrics.Components{}, metrics.Outputs{}), metrics.Run{})
	if err := f.bind(t.Context()); err != nil {
		return nil, "", err
	}
	stop = f.serve(exposition.Source{
		Snapshot: live.Snapshot,
		Health:   exposition.NewHealth(func() time.Duration { return 0 }, exposition.Patience),
		Build:    buildOf(cli.ReadBuild()),
		Log:      a.Logger(),
	})
	return stop, log.String(), nil
}

func metricsFlag(t *testing.T, args ...string) *metricsFlags {
	t.Helper()
	var f metricsFlags
	c := &cobra.Command{}
	f.register(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestMetricsAreServedWhereTheFlagSays(t *testing.T) {
	defer goleak.VerifyNone(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, unwanted := metricsFlag(t, "--metrics=127.0.0.1:0"), metricsFlag(t)
	unwanted.address = taken.Addr().String() // as if it were the default
	for name, tc := range map[string]struct {
		flag                 *metricsFlags
		wantLog, wantProblem string
		wantServed           bool
	}{
		"on a free port":     {free, `msg="metrics are served" address=127.0.0.1:`, "", true},
		"off":                {metricsFlag(t, "--metrics=off"), "", "", false},
		"nowhere":            {metricsFlag(t, "--metrics="), "", "", false},
		"default is taken":   {unwanted, `level=WARN msg="metrics are not served" address=127.0.0.1:`, "", false},
		"given one is taken": {metricsFlag(t, "--metrics="+taken.Addr().String()), "", "address already in use", false},
		"no address":         {metricsFlag(t, "--metrics=here"), "", "missing port", false},
		"for other machines": {metricsFlag(t, "--metrics=0.0.0.0:0"), `level=WARN msg="metrics can be read from other machines"`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			stop, log, err := served(t, tc.flag)
			if err != nil || tc.wantProblem != "" {
				if err == nil || tc.wantProblem == "" || !strings.Contains(err.Error(), tc.wantProblem) || !strings.Contains(err.Error(), "--metrics") {
					t.Fatalf("error %v, want %q", err, tc.wantProblem)
				}
				return
			}
			defer stop()
			if !strings.Contains(log, tc.wantLog) || log != "" && tc.wantLog == "" {
				t.Errorf("logged %q, want %q", log, tc.wantLog)
			}
			address := regexp.MustCompile(`msg="metrics are served" address=\S*:(\d+)`).FindStringSubmatch(log)
			if (address != nil) != tc.wantServed {
				t.Fatalf("served: %v, want %v", address, tc.wantServed)
			}
			if tc.wantServed {
				checkAlive(t, "http://127.0.0.1:"+address[1]+"/healthz")
			}
		})
	}
}

func checkAlive(t *testing.T, url string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "ok\n" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestMetricsStayOnThisMachine(t *testing.T) {
	host, _, err := net.SplitHostPort(metricsFlag(t).address)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("default address %q, %v", host, err)
	}
}
