package operate

import (
	"context"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core/metrics/exposition"
)

// metricsFlags say where metrics and health are served.
type metricsFlags struct {
	address string
	given   func() bool // by the user

	bound   net.Listener // until it is served on
	problem error        // why the default address is not
}

const metricsOff = "off"

func (f *metricsFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "metrics", exposition.DefaultAddress,
		`HOST:PORT to serve /metrics, /healthz and /readyz on; "off" for nowhere. Anyone who reaches it may read it`)
	f.given = func() bool { return c.Flags().Changed("metrics") }
}

// bind takes the address before the run begins, so that none is left behind that was refused. Another program on the default
// address is no reason not to run.
func (f *metricsFlags) bind(ctx context.Context) (err error) {
	if f.address == metricsOff || f.address == "" {
		return nil
	}
	f.bound, f.problem = exposition.Bind(ctx, f.address)
	if f.problem != nil && f.given() {
		return cli.Problem("--metrics", f.problem.Error(), `give a free HOST:PORT, such as 127.0.0.1:0 for any port, or "off"`)
	}
	return nil
}

// release gives up an address on which nothing came to be served.
func (f *metricsFlags) release() {
	if f.bound != nil {
		_ = f.bound.Close() // nobody was served
		f.bound = nil
	}
}

// serve serves the source, which has a log, on the address that was bound, until stop is called.
func (f *metricsFlags) serve(s exposition.Source) (stop func()) {
	log := s.Log
	if f.problem != nil {
		log.Warn("metrics are not served", "address", f.address, "error", f.problem)
	}
	if f.bound == nil {
		return func() {}
	}
	server := exposition.Serve(f.bound, exposition.NewHandler(s))
	f.bound = nil
	log.Info("metrics are served", "address", server.Addr())
	if !server.Loopback() {
		log.Warn("metrics can be read from other machines", "address", server.Addr())
	}
	return func() { stopServing(server, log) }
}

func stopServing(s *exposition.Server, log *slog.Logger) {
	if err := s.Close(); err != nil {
		log.Warn("metrics did not end well", "error", err)
	}
}

// buildOf is what metrics tell of this program.
func buildOf(b cli.BuildInfo) exposition.Build {
	return exposition.Build{Version: b.Version, Commit: b.Commit, Go: b.Go}
}
