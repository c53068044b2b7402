package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/ui"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/lab/report"
)

func (a *app) uiCommand() *cobra.Command {
	port := 0
	c := &cobra.Command{
		Use:   "ui [DIR|RUN]",
		Short: "Show runs in the browser, runs in progress live",
		Long: `Serves the pages of a folder of runs, or of one run, on the loopback of this machine until it is interrupted. The
address that it prints holds a token: no one else can read. There is nothing to change there.

The page of a live run is that of quartet report as far as the run has come, and follows it to its end.`,
		Example: `  quartet ui
  quartet ui runs/default`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := cli.DefaultOut
			if len(args) == 1 {
				dir = args[0]
			}
			return a.serveUI(c.Context(), dir, port)
		},
	}
	c.Flags().IntVar(&port, "port", 0, "port of the loopback (default: a free one)")
	return c
}

// headerLimit is how long a browser may take to ask.
const headerLimit = 10 * time.Second

func (a *app) serveUI(ctx context.Context, dir string, port int) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return cli.Problem(dir, "there is no such folder", "give a folder of runs or of one run")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return cli.Problem("--port", err.Error(), "give a free port, or none")
	}
	s, err := ui.New(dir, listener.Addr(), func(dir string) ui.Watch { return watched(ui.Socket(dir)) })
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: headerLimit}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // there is nothing to lose
	defer stop()
	fmt.Fprintln(a.Stdout, s.Address())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// watched is the scheduler behind a socket.
type watched string

// State asks for the jobs that have not ended, and for the nodes.
func (w watched) State(ctx context.Context) (*ui.State, error) {
	client, err := control.Dial(ctx, string(w))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	jobs, now, err := client.Jobs(ctx, false)
	if err != nil {
		return nil, err
	}
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return stateOf(jobs, nodes, now), nil
}

// stateOf is what the answers of a scheduler tell of its run.
func stateOf(jobs []*controlv1.Job, nodes []*controlv1.Node, now float64) *ui.State {
	s := &ui.State{Now: now, Nodes: [][5]any{}, Jobs: [][6]any{}, Foresight: listForesight(jobs, now)}
	for _, n := range nodes {
		s.Used, s.Devices = s.Used+int(n.GetUsed()), s.Devices+int(n.GetDevices())
		if n.GetHealth() == "ready" {
			s.Ready += int(n.GetDevices())
		}
		s.Nodes = append(s.Nodes, [5]any{n.GetName(), n.GetAccelerator(), n.GetUsed(), n.GetDevices(), n.GetHealth()})
	}
	for _, j := range jobs {
		ahead := ""
		if s.Foresight != "" {
			ahead = expected(j, now)
		}
		s.Jobs = append(s.Jobs, [6]any{j.GetName(), j.GetState(), j.GetReason(), held(j), j.SubmitSeconds, ahead})
	}
	return s
}

// SoFar asks for the files that are written when the run ends.
func (w watched) SoFar(ctx context.Context) (*report.SoFar, error) {
	return ui.ReadSoFar(ctx, string(w))
}

// Job asks for what `quartet explain` shows.
func (w watched) Job(ctx context.Context, name string) (*ui.Details, error) {
	client, err := control.Dial(ctx, string(w))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	d, err := client.Describe(ctx, name)
	if err != nil {
		return nil, err
	}
	return detailsOf(d), nil
}

// detailsOf is what a scheduler knows of a job, as the page shows it.
func detailsOf(d *controlv1.DescribeResponse) *ui.Details {
	j := d.GetJob()
	details := &ui.Details{Decisions: [][2]any{}, Facts: [][2]string{
		{"state", j.GetState()},
		{"why", j.GetReason()},
	}}
	outlookLines(j, d.GetNowSeconds(), func(name, value string) { details.Facts = append(details.Facts, [2]string{name, value}) })
	details.Facts = append(details.Facts, [][2]string{
		{"tenant", j.GetTenant()},
		{"application", j.GetApplication()},
		{"experiment", j.GetExperiment()},
		{"asked for", strconv.FormatUint(uint64(j.GetRequested()), 10)},
		{"command", strings.Join(j.GetCommand(), " ")},
		{"restarts", strconv.FormatUint(uint64(j.GetRestarts()), 10)},
		{"preemptions", strconv.FormatUint(uint64(j.GetPreemptions()), 10)},
		{"last trouble", j.GetMessage()},
	}...)
	for _, m := range j.GetMetrics() {
		details.Facts = append(details.Facts, [2]string{m.GetName(), fmt.Sprintf("%s at step %s, from %s to %s in %d reports", short(m.GetValue()), short(m.GetStep()), short(m.GetLowest()), short(m.GetHighest()), m.GetReports())})
	}
	for _, decision := range d.GetDecisions() {
		details.Decisions = append(details.Decisions, [2]any{decision.GetAtSeconds(), strings.TrimSpace(decision.GetWhat() + " " + because(decision))})
	}
	return details
}
