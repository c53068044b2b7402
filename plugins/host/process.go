package host

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Binary is a plugin to start.
type Binary struct {
	Name         string        // Name is for messages.
	Path         string        // Path of its file, relative to the working directory.
	Args         []string      // Args are passed to the program.
	SHA256       string        // SHA256 of an installed plugin, in hex: a file with another hash is not started. Empty for a file that the user named.
	Environment  []string      // Environment names the variables that it may see, besides those of every plugin.
	StartTimeout time.Duration // StartTimeout bounds the start, Describe and Configure included; 0 is 10 s.
	EndTimeout   time.Duration // EndTimeout is how long the process may take to end when asked, before it is killed; 0 is 2 s.
	Log          *slog.Logger  // Log receives what the plugin writes; nil discards it.
}

// Component says which component of a plugin to create.
type Component struct {
	Stage  stagev1.Stage  // Stage of the policy.
	Type   string         // Type of the policy.
	ID     string         // ID in messages and in the seed, such as "allocation/backfill".
	Seed   uint64         // Seed of the run.
	Config map[string]any // Config holds the user's settings.
}

// environment is what every plugin may see.
var environment = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "GOMAXPROCS", "PYTHONPATH", "VIRTUAL_ENV"}

// Process is a started plugin.
type Process struct {
	Conn    *grpc.ClientConn // nil until it shook hands
	command *exec.Cmd
	folder  *socketFolder
	channel *channel
	output  *output
	pipes   []*os.File     // our ends of its stdout and stderr
	reading sync.WaitGroup // the goroutines on them
	ended   chan struct{}  // closed once it ended
	close   sync.Once

	endTimeout time.Duration // see Binary.EndTimeout
}

// Start starts the plugin and shakes hands. The caller closes the process.
func (b Binary) Start(ctx context.Context) (*Process, error) {
	if err := b.verify(); err != nil {
		return nil, fmt.Errorf("start plugin %q (%s): %w", b.Name, b.Path, err)
	}
	certificate, tlsConfig, err := newTLS()
	if err != nil {
		return nil, b.failed(err, nil)
	}
	p, stdout, err := b.launch(certificate)
	if err != nil {
		return nil, b.failed(err, nil)
	}
	timed, cancel := context.WithTimeout(ctx, b.startTimeout())
	defer cancel()
	at, err := p.shakeHands(timed, stdout)
	if err == nil {
		if p.Conn, err = at.dial(tlsConfig); err == nil {
			return p, nil
		}
	}
	p.Close()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if timed.Err() != nil {
		err = errTimeout
	}
	return nil, b.failed(err, p)
}

// launch starts the process, in a group of its own and with pipes of ours.
func (b Binary) launch(certificate string) (p *Process, stdout *bufio.Reader, err error) {
	p = &Process{output: newOutput(b.Log, b.Name), ended: make(chan struct{}), endTimeout: cmp.Or(b.EndTimeout, defaultEndTimeout)}
	if p.folder, err = newSocketFolder(); err != nil {
		return nil, nil, err
	}
	if p.channel, err = newChannel(); err != nil {
		p.abandon(nil)
		return nil, nil, err
	}
	p.command = exec.Command(b.Path, b.Args...)
	p.command.Env = append(b.environment(), append(handshakeEnvironment(certificate, p.folder.path), wire.EnvChannel+"=3")...)
	p.command.ExtraFiles = []*os.File{p.channel.theirs} // descriptor 3
	p.command.SysProcAttr = ownGroup()
	var theirs []*os.File
	for _, stream := range []*io.Writer{&p.command.Stdout, &p.command.Stderr} {
		ours, other, err := os.Pipe()
		if err != nil {
			p.abandon(theirs)
			return nil, nil, err
		}
		*stream, theirs, p.pipes = other, append(theirs, other), append(p.pipes, ours)
	}
	if err := p.command.Start(); err != nil {
		p.abandon(theirs)
		return nil, nil, err
	}
	closeAll(theirs)
	p.channel.started()
	stderr := bufio.NewReader(p.pipes[1])
	p.reading.Go(func() { p.output.read(stderr) })
	go p.wait()
	return p, bufio.NewReader(p.pipes[0]), nil
}

// abandon gives up what was made for a process that did not start.
func (p *Process) abandon(theirs []*os.File) {
	closeAll(theirs)
	closeAll(p.pipes)
	if p.channel != nil {
		_ = p.channel.Close() // the other end is closed
	}
	p.folder.remove()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // pipes: there is nothing to lose
	}
}

// wait waits for the end of the process, and ends the children that it leaves. Right after its end, for its number is
// given to another one some day.
func (p *Process) wait() {
	_ = p.command.Wait() // the state of the process holds the result
	killGroup(p.command.Process.Pid)
	close(p.ended)
}

// shakeHands waits for the handshake, and passes on what the process prints to stdout after it.
func (p *Process) shakeHands(ctx context.Context, stdout *bufio.Reader) (at address, err error) {
	stop := context.AfterFunc(ctx, func() { _ = p.pipes[0].SetReadDeadline(time.Unix(0, 1)) })
	defer stop()
	if at, err = readHandshake(stdout); err != nil {
		return at, err
	}
	p.reading.Go(func() { p.output.read(stdout) })
	return at, nil
}

const (
	// defaultEndTimeout is how long a process may take to end when asked to.
	defaultEndTimeout = 2 * time.Second
	// afterwards is how long its pipes are read once it has ended, and everything of it was killed.
	afterwards = 200 * time.Millisecond
)

// Close ends the process and its children, within Binary.EndTimeout and a little more, whatever they do. A process that does not end
// when asked is killed.
func (p *Process) Close() {
	p.close.Do(func() {
		p.end()
		_ = p.channel.Close() // the other end is closed
		killStrays(p.folder.path)
		read := make(chan struct{})
		go func() { p.reading.Wait(); close(read) }()
		select {
		case <-read:
		case <-time.After(afterwards): // a process that we cannot end holds them open
		}
		for _, pipe := range p.pipes {
			_ = pipe.SetReadDeadline(time.Unix(0, 1))
		}
		<-read
		closeAll(p.pipes)
		p.output.end()
		p.folder.remove()
	})
}

// Kill ends the process and its children like Close, without asking it first.
func (p *Process) Kill() {
	if !p.Exited() {
		killGroup(p.command.Process.Pid)
	}
	<-p.ended
	p.Close()
}

// end ends the process and its group.
func (p *Process) end() {
	if p.Conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), p.endTimeout)
		defer cancel()
		go func() {
			defer cancel()
			<-p.ended
		}()
		if !p.Exited() {
			askToEnd(ctx, p.Conn)
		}
		<-ctx.Done()
		_ = p.Conn.Close() // the other end is closed
	}
	if !p.Exited() {
		killGroup(p.command.Process.Pid)
	}
	<-p.ended
}

// Exited reports whether the process has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// End returns how the process ended, such as "exit status 3", once Close has returned.
func (p *Process) End() string { return p.command.ProcessState.String() }

// FinalOutput returns the end of what the process wrote to stderr, once Close has returned.
func (p *Process) FinalOutput() string { return p.output.finalOutput() }

// Session starts the plugin and configures one component in it. Problems in the settings are core.Diagnostics.
func (b Binary) Session(ctx context.Context, c Component) (*Session, error) {
	p, err := b.Start(ctx)
	if err != nil {
		return nil, err
	}
	return b.serve(ctx, p, c)
}

// serve configures one component in a started process, which it ends when that goes wrong.
func (b Binary) serve(ctx context.Context, p *Process, c Component) (*Session, error) {
	configured, err := b.configure(ctx, p, c, false)
	if err != nil {
		p.Close()
		return nil, err
	}
	conn, err := p.calls(ctx, configured)
	if err != nil {
		p.Close()
		return nil, b.failed(err, p)
	}
	return &Session{Conn: conn, Close: p.Close, Kill: p.Kill, End: p.End, FinalOutput: p.FinalOutput, Abilities: wire.AbilitiesFrom(configured)}, nil
}

// configure calls Configure within the time that a start may take, and explains its failure.
func (b Binary) configure(ctx context.Context, p *Process, c Component, checkOnly bool) (*stagev1.ConfigureResponse, error) {
	timed, cancel := context.WithTimeout(ctx, b.startTimeout())
	defer cancel()
	answer, err := configure(timed, p.Conn, c, checkOnly, true)
	var problems core.Diagnostics
	if err == nil || errors.As(err, &problems) {
		return answer, err
	}
	return nil, b.explain(ctx, timed, p, err)
}

// explain describes the failure of a call that is part of the start. timed is ctx with the deadline of the call.
func (b Binary) explain(ctx, timed context.Context, p *Process, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		err = errTimeout
	default:
		if s, ok := status.FromError(err); ok {
			err = errors.New(s.Message())
		}
	}
	return b.failed(err, p)
}

func (b Binary) startTimeout() time.Duration { return cmp.Or(b.StartTimeout, defaultStartTimeout) }

// mostProblems bounds the problems that a plugin can find in its settings.
const mostProblems = 50

// Configure creates a component at the other end of a connection, or only checks its settings. Problems in the
// settings are core.Diagnostics, with paths relative to the settings.
func Configure(ctx context.Context, conn grpc.ClientConnInterface, c Component, checkOnly bool) (*stagev1.ConfigureResponse, error) {
	return configure(ctx, conn, c, checkOnly, false)
}

// configure also offers a channel to the plugin, if it has one.
func configure(ctx context.Context, conn grpc.ClientConnInterface, c Component, checkOnly, channel bool) (*stagev1.ConfigureResponse, error) {
	settings, err := json.Marshal(c.Config)
	if err != nil {
		return nil, fmt.Errorf("settings of %q: %w", c.ID, err)
	}
	answer, err := stagev1.NewBaseServiceClient(conn).Configure(ctx, &stagev1.ConfigureRequest{
		Stage: c.Stage, Type: c.Type, ComponentId: c.ID, Seed: c.Seed, ConfigJson: string(settings), CheckOnly: checkOnly, Channel: channel,
	})
	if err != nil {
		return nil, err
	}
	var problems core.Diagnostics
	reported := answer.GetDiagnostics()
	for _, d := range reported[:min(len(reported), mostProblems)] {
		problems = append(problems, core.Diagnostic{
			Path: core.CleanText(d.GetPath(), core.MaxText), Summary: core.CleanText(d.GetSummary(), core.MaxText), Hint: core.CleanText(d.GetHint(), core.MaxText),
		})
	}
	if err := problems.Err(); err != nil {
		return answer, err
	}
	return answer, checkGuarantees(answer.GetGuarantees())
}

// checkGuarantees refuses anything but a part from 0 to 1 for each tier.
func checkGuarantees(parts []float64) error {
	if len(parts) == 0 {
		return nil
	}
	if tiers := core.Tiers(); len(parts) != len(tiers) {
		return fmt.Errorf("guarantees %v: must be a number for each of %s", parts, strings.Join(tiers, ", "))
	}
	for _, part := range parts {
		if !(part >= 0 && part <= 1) {
			return fmt.Errorf("guarantees %v: must be from 0 to 1", parts)
		}
	}
	return nil
}

func (b Binary) environment() []string {
	var env []string
	for _, names := range [][]string{environment, b.Environment} {
		for _, name := range names {
			if value, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+value)
			}
		}
	}
	return env
}

// errTimeout says that a plugin was not ready in time.
var errTimeout = errors.New("not ready in time")

// failed describes a failure to start; p is nil if no process ran, and closed otherwise.
func (b Binary) failed(err error, p *Process) error {
	text := core.CleanText(err.Error(), core.MaxText)
	if p == nil { // nothing ran: the text says what to do
		return fmt.Errorf("start plugin %q (%s): %s", b.Name, b.Path, text)
	}
	remedy := fmt.Sprintf("started by hand, %s says what it is, or why it cannot start", b.Path)
	last := p.FinalOutput()
	switch module := missingModule(last); {
	case module != "":
		text = fmt.Sprintf("its Python lacks the module %q", module)
		remedy, last = howToInstall(module, interpreterOf(b.Path)), ""
	case errors.Is(err, errNoPlugin):
		remedy = "a plugin calls sdk.Main and prints nothing to stdout before"
	case errors.Is(err, errProtocol):
		remedy = fmt.Sprintf("this quartet speaks protocol %d to %d: rebuild the plugin", wire.MinProtocol, wire.Protocol)
	case errors.Is(err, errTimeout):
		text = fmt.Sprintf("it was not ready after %v", b.startTimeout())
		remedy = "raise plugin.start_timeout if it needs the time"
	}
	if last != "" {
		text += fmt.Sprintf("; its last output: %q", last)
	}
	return fmt.Errorf("start plugin %q (%s): %s; %s", b.Name, b.Path, text, remedy)
}

// defaultStartTimeout is how long a plugin may take to be ready, unless a config says otherwise.
const defaultStartTimeout = 10 * time.Second
