package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/core/metrics/exposition"
)

// metricsFlags say where metrics and health are served.
type metricsFlags struct {
	address string
	given   func() bool // by the user
}

const metricsOff = "off"

func (f *metricsFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "metrics", exposition.DefaultAddress,
		`HOST:PORT to serve /metrics, /healthz and /readyz on; "off" for nowhere. Whoever reaches it may read it`)
	f.given = func() bool { return c.Flags().Changed("metrics") }
}

// serve serves the source, which has a log, until stop is called. Another program on the default address is no reason not to run.
func (f *metricsFlags) serve(ctx context.Context, s exposition.Source) (stop func(), err error) {
	if f.address == metricsOff || f.address == "" {
		return func() {}, nil
	}
	log := s.Log
	server, err := exposition.Listen(ctx, f.address, exposition.NewHandler(s))
	if err != nil && f.given() {
		return nil, problem("--metrics", err.Error(), `give a free HOST:PORT, such as 127.0.0.1:0 for any port, or "off"`)
	}
	if err != nil {
		log.Warn("metrics are not served", "address", f.address, "error", err)
		return func() {}, nil
	}
	log.Info("metrics are served", "address", server.Addr())
	if !server.Loopback() {
		log.Warn("metrics can be read from other machines", "address", server.Addr())
	}
	return func() { stopServing(server, log) }, nil
}

func stopServing(s *exposition.Server, log *slog.Logger) {
	if err := s.Close(); err != nil {
		log.Warn("metrics did not end well", "error", err)
	}
}

// buildOf is what metrics tell of this program.
func buildOf(b buildInfo) exposition.Build {
	return exposition.Build{Version: b.Version, Commit: b.Commit, Go: b.Go}
}
