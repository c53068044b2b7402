package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/internal/interrupt"
)

// defaultRun is the name of the run that the embedded config of `run` makes.
const defaultRun = "local"

// controlSocket is where the scheduler of a run takes orders.
func controlSocket(runDir string) string { return filepath.Join(runDir, "live", control.SocketName) }

// tlsFlags name the files for TCP.
type tlsFlags struct{ control.TLSFiles }

func (f *tlsFlags) register(c *cobra.Command, address, whose string) {
	c.Flags().StringVar(&f.Certificate, "tls-cert", "", "certificate of "+whose+", in PEM")
	c.Flags().StringVar(&f.Key, "tls-key", "", "its key, in PEM")
	c.Flags().StringVar(&f.Authority, "tls-ca", "", "authority of the certificates of the other side, in PEM")
	c.MarkFlagsRequiredTogether(address, "tls-cert", "tls-key", "tls-ca")
}

// serveFlags say how a scheduler takes orders, besides through its socket.
type serveFlags struct {
	tlsFlags
	listen string
	note   func(format string, args ...any) // tells the user; nil for nobody
	bound  *control.TLSListener             // nil when it is not given, and once it is served on
}

func (f *serveFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.listen, "listen", "", "take orders on this HOST:PORT, too, from any client with a certificate of --tls-ca")
	f.tlsFlags.register(c, "listen", "the scheduler")
}

// bind takes the address before the run begins.
func (f *serveFlags) bind(ctx context.Context) (err error) {
	if f.listen == "" {
		return nil
	}
	f.bound, err = control.ListenTLS(ctx, f.listen, f.TLSFiles)
	if _, positioned := errors.AsType[core.Diagnostics](err); err == nil || positioned {
		return err
	}
	return cli.Problem("--listen", err.Error(), "give a free HOST:PORT")
}

// release gives up an address on which nobody came to answer.
func (f *serveFlags) release() {
	if f.bound != nil {
		_ = f.bound.Close() // nobody was served
		f.bound = nil
	}
}

// serve takes orders for a backend, through a socket in its folder and on the address that was bound, until the server is closed.
func (f *serveFlags) serve(folder string, o backend.Operated, b *control.Board, soFar control.SoFar, log *slog.Logger) (*control.Server, error) {
	s := control.NewServer(o, b, log)
	s.SetSoFar(soFar)
	socket := filepath.Join(folder, control.SocketName)
	err := s.ServeSocket(socket)
	if err == nil && f.bound != nil {
		err = s.ServeTLS(f.bound)
		f.bound = nil
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if f.note != nil {
		f.noteReady(socket, o)
	}
	return s, nil
}

// noteReady says where the scheduler takes orders, and how to give it one.
func (f *serveFlags) noteReady(socket string, o backend.Operated) {
	which := ""
	dir := filepath.Dir(filepath.Dir(socket)) // OUT/NAME
	if controlSocket(dir) != socket {
		which = " --socket " + socket
	} else {
		if name := filepath.Base(dir); name != defaultRun {
			which = " --run " + name
		}
		if out := filepath.Dir(dir); out != cli.DefaultOut {
			which += " --out " + out
		}
	}
	where := socket
	if f.listen != "" {
		where += " and " + f.listen
	}
	submit := "quartet submit" + which + " FILE"
	if elsewhere, is := o.(backend.SubmittedElsewhere); is {
		submit = elsewhere.SubmitCommand()
	}
	f.note("ready: takes orders on %s; jobs come with: %s", where, submit)
}

// schedulerFlags say which scheduler is meant.
type schedulerFlags struct {
	tlsFlags
	cli.KubeFlags
	app                      *app
	run, out, socket, server string
	patience                 time.Duration
}

// The patience of commands: a scheduler that was just started needs a moment until it answers.
const (
	usualPatience = 5 * time.Second
	knockEvery    = 50 * time.Millisecond
)

func (f *schedulerFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.run, "run", defaultRun, "name of the run")
	c.Flags().StringVar(&f.out, "out", cli.DefaultOut, "folder in which the run is")
	c.Flags().StringVar(&f.socket, "socket", "", "socket of the scheduler, instead of that of a run")
	c.Flags().StringVar(&f.server, "server", "", "HOST:PORT of the scheduler, instead of a socket")
	c.Flags().DurationVar(&f.patience, "wait", usualPatience, "how long to wait for the scheduler to open its socket")
	f.tlsFlags.register(c, "server", "yours")
	f.KubeFlags.Register(f.app.App, c)
	for _, other := range [][2]string{{"socket", "server"}, {"run", "socket"}, {"run", "server"}, {"out", "socket"}, {"out", "server"}} {
		c.MarkFlagsMutuallyExclusive(other[0], other[1])
	}
}

// check refuses a path in the place of a name.
func (f *schedulerFlags) check() error {
	if err := f.KubeFlags.Check(); err != nil {
		return err
	}
	dir, name := filepath.Split(f.run)
	if dir == "" && name != "." && name != ".." {
		return nil
	}
	hint := ""
	if plain := filepath.Base(f.run); plain != "." && plain != ".." && plain != string(filepath.Separator) {
		hint = fmt.Sprintf("its folder is for --out: --out %s --run %s", filepath.Clean(filepath.Join(f.run, "..")), plain)
	}
	return cli.Problem("--run", fmt.Sprintf("%q is a path, not the name of a run", f.run), hint)
}

// open connects to the scheduler.
func (f *schedulerFlags) open(ctx context.Context) (cluster.Orders, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Meant() {
		f.app.ByCalendar = true
		return f.app.OpenCluster(&f.KubeFlags)
	}
	if f.server != "" {
		client, err := control.DialTLS(f.server, f.TLSFiles)
		if err != nil {
			return nil, err
		}
		return client, nil
	}
	path := f.socket
	if path == "" {
		path = controlSocket(filepath.Join(f.out, f.run))
	}
	client, err := f.knock(ctx, path)
	if errors.Is(err, control.ErrNotRunning) {
		err = f.notRunning(err)
	}
	if err != nil {
		return nil, err
	}
	return client, nil
}

// knock opens a socket, as soon as there is one.
func (f *schedulerFlags) knock(ctx context.Context, path string) (*control.Client, error) {
	limit := time.NewTimer(f.patience)
	defer limit.Stop()
	for {
		client, err := control.Dial(ctx, path)
		if !errors.Is(err, control.ErrNotRunning) {
			return client, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			return nil, err
		case <-time.After(knockEvery):
		}
	}
}

// notRunning says what can be done where no scheduler answers. To start a run again may remove the logs of the last one.
func (f *schedulerFlags) notRunning(err error) error {
	const start = `start one with "quartet run", or say which with --run, --out or --socket`
	if f.socket != "" {
		return fmt.Errorf("%w; %s", err, start)
	}
	what := start
	dir := filepath.Join(f.out, f.run)
	if _, err := os.Stat(filepath.Join(dir, "live")); err == nil {
		what = "the run has ended, or its scheduler was killed: logs and explain read what it left with --run-dir " + dir
	} else if others := runningIn(f.out); len(others) > 0 {
		what = fmt.Sprintf("running here: %s (use --run %s)", strings.Join(others, ", "), others[0])
	}
	return fmt.Errorf("%w for run %q; %s", control.ErrNotRunning, f.run, what)
}

// runningIn lists the runs in a folder whose scheduler answers.
func runningIn(out string) (runs []string) {
	sockets, _ := filepath.Glob(controlSocket(filepath.Join(out, "*"))) // a folder that cannot be read has none
	for _, socket := range sockets {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close() // nothing was said
			runs = append(runs, filepath.Base(filepath.Dir(filepath.Dir(socket))))
		}
	}
	return runs
}

// with connects to the scheduler, does something there, and hangs up.
func (f *schedulerFlags) with(ctx context.Context, do func(cluster.Orders) error) error {
	client, err := f.open(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(do(client), client.Close())
	if f.server != "" && status.Code(err) == codes.Unavailable {
		return fmt.Errorf("%w; is there one on %s, and does it take this certificate?", err, f.server)
	}
	return err
}

// operation makes a command that talks to a running scheduler.
func (f *schedulerFlags) operation(c *cobra.Command, do func(ctx context.Context, client cluster.Orders, args []string) error) *cobra.Command {
	f.register(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return f.with(c.Context(), func(client cluster.Orders) error { return do(c.Context(), client, args) })
	}
	return c
}

// completionLimit bounds how long a shell waits for names.
const completionLimit = 2 * time.Second

// complete offers names that the scheduler knows, for so many arguments.
func (f *schedulerFlags) complete(c *cobra.Command, most int, names func(context.Context, cluster.Orders) ([]string, error)) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		f.patience = 0
		ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
		defer cancel()
		var list []string
		if err := f.with(ctx, func(client cluster.Orders) (err error) {
			list, err = names(ctx, client)
			return err
		}); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

func liveJobs(ctx context.Context, client cluster.Orders) ([]string, error) {
	return jobNames(ctx, client, false)
}

func allJobs(ctx context.Context, client cluster.Orders) ([]string, error) {
	return jobNames(ctx, client, true)
}

func jobNames(ctx context.Context, client cluster.Orders, ended bool) (names []string, err error) {
	jobs, _, err := client.Jobs(ctx, ended)
	for _, j := range jobs {
		names = append(names, j.GetName())
	}
	return names, err
}

func nodeNames(ctx context.Context, client cluster.Orders) (names []string, err error) {
	nodes, err := client.Nodes(ctx)
	for _, n := range nodes {
		names = append(names, n.GetName())
	}
	return names, err
}

// unique lists what is given more than once where it is given first.
func unique(list []string) []string {
	var kept []string
	for _, one := range list {
		if !slices.Contains(kept, one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// each does something to every one of several, whatever comes of the others.
func each(list []string, do func(string) error) error {
	var errs []error
	for _, one := range list {
		errs = append(errs, do(one))
	}
	return errors.Join(errs...)
}

// readJobFile reads a job file, or standard input for "-".
func readJobFile(ctx context.Context, name string, stdin io.Reader) (backend.JobFile, error) {
	return interrupt.Call(ctx, func() (backend.JobFile, error) { return jobFileIn(name, stdin) })
}

func jobFileIn(name string, stdin io.Reader) (file backend.JobFile, err error) {
	from := stdin
	if name == "-" {
		name = "stdin"
	} else {
		opened, err := os.Open(name)
		if err != nil {
			return file, cli.Problem(name, "cannot be read: "+errors.Unwrap(err).Error(), "")
		}
		defer opened.Close()
		from = opened
	}
	file.Name = name
	if file.Text, err = io.ReadAll(io.LimitReader(from, control.MaxJobFile+1)); err != nil {
		return file, cli.Problem(name, "cannot be read: "+err.Error(), "")
	}
	if len(file.Text) > control.MaxJobFile {
		return file, cli.Problem(name, fmt.Sprintf("is larger than %d MiB", control.MaxJobFile>>20), "split it")
	}
	if file.Dir, err = os.Getwd(); err != nil {
		return file, err
	}
	return file, nil
}
