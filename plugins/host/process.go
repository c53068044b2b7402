package host

import (
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

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Binary is a plugin to start.
type Binary struct {
	Name         string // for messages
	Path         string
	Args         []string
	SHA256       string        // hex, as installed; a binary with another hash is not started. Empty for one that the user named
	Environment  []string      // names of the variables it may see, besides those of every plugin
	StartTimeout time.Duration // 0 for DefaultStartTimeout
	Log          *slog.Logger
}

// Component says which component of a plugin to create.
type Component struct {
	Stage  stagev1.Stage
	Type   string
	ID     string
	Seed   uint64
	Config map[string]any // the user's settings
}

// environment is what every plugin may see.
var environment = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "GOMAXPROCS", "PYTHONPATH", "VIRTUAL_ENV"}

// Process is a started plugin.
type Process struct {
	Conn    *grpc.ClientConn
	client  *plugin.Client
	command *exec.Cmd
	stderr  *tail
	folder  string
	channel *channel
}

// Start starts the plugin and shakes hands. It ends with the process.
func (b Binary) Start(ctx context.Context) (*Process, error) {
	secure, err := b.verify()
	if err != nil {
		return nil, fmt.Errorf("start plugin %q (%s): %w", b.Name, b.Path, err)
	}
	certificate, tlsConfig, err := newTLS()
	if err != nil {
		return nil, b.failed(err, nil)
	}
	folder, err := os.MkdirTemp("", wire.SocketFolder)
	if err != nil {
		return nil, b.failed(err, nil)
	}
	command := exec.Command(b.Path, b.Args...)
	channel, err := newChannel()
	if err != nil {
		_ = os.RemoveAll(folder) // it is empty
		return nil, b.failed(err, nil)
	}
	command.ExtraFiles = []*os.File{channel.theirs} // descriptor 3
	command.Env = append(b.environment(), envHostCertificate+"="+certificate, plugin.EnvUnixSocketDir+"="+folder, wire.EnvChannel+"=3")
	log := b.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	words := &tail{}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{wire.Protocol: {wire.PluginName: dialled{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              command,
		TLSConfig:        tlsConfig,
		SkipHostEnv:      true,
		SecureConfig:     secure,
		StartTimeout:     b.startTimeout(),
		Logger:           newLogger(log, b.Name),
		Stderr:           words,
		SyncStdout:       io.Discard,
		SyncStderr:       io.Discard,
		GRPCDialOptions:  wire.DialOptions(),
	})
	p := &Process{client: client, command: command, stderr: words, folder: folder, channel: channel}
	stop := context.AfterFunc(ctx, client.Kill)
	defer stop()
	protocol, err := client.Client()
	channel.started()
	if err == nil {
		var raw any
		if raw, err = protocol.Dispense(wire.PluginName); err == nil {
			p.Conn = raw.(*grpc.ClientConn)
			return p, nil
		}
	}
	p.Close()
	return nil, b.failed(err, words)
}

// patience is how long a process may take to end when asked to.
const patience = 2 * time.Second

// Close ends the process. One that does not answer is killed.
func (p *Process) Close() {
	kill := time.AfterFunc(patience, func() {
		if p.command.Process != nil {
			_ = p.command.Process.Kill() // it may be gone
		}
	})
	defer kill.Stop()
	p.client.Kill()
	_ = p.channel.Close()
	_ = os.RemoveAll(p.folder) // in the folder for temporary files: it is forgotten at worst
}

// PID is that of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// End tells how the process ended, once Close returned.
func (p *Process) End() string { return p.command.ProcessState.String() }

// LastWords is the end of what the process wrote to stderr.
func (p *Process) LastWords() string { return p.stderr.String() }

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
		return nil, b.failed(err, p.stderr)
	}
	return &Session{Conn: conn, Close: p.Close, End: p.End, LastWords: p.LastWords}, nil
}

// configure is Configure within the time that a start may take, its failures told in words.
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

// explain words the failure of a call that is part of the start. timed is ctx with the deadline of the call.
func (b Binary) explain(ctx, timed context.Context, p *Process, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		err = errors.New("timeout")
	default:
		if s, ok := status.FromError(err); ok {
			err = errors.New(s.Message())
		}
	}
	return b.failed(err, p.stderr)
}

func (b Binary) startTimeout() time.Duration { return cmp.Or(b.StartTimeout, DefaultStartTimeout) }

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
	for _, d := range answer.GetDiagnostics() {
		problems = append(problems, core.Diagnostic{Path: d.GetPath(), Summary: d.GetSummary(), Hint: d.GetHint()})
	}
	return answer, problems.Err()
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

// failed words a failure to start; words is what the process wrote to stderr, nil if none ran.
func (b Binary) failed(err error, words *tail) error {
	text := strings.TrimSpace(strings.SplitN(err.Error(), "\n", 2)[0])
	if words == nil { // nothing ran: the text says what to do
		return fmt.Errorf("start plugin %q (%s): %s", b.Name, b.Path, text)
	}
	remedy := fmt.Sprintf("`quartet plugin test %s` says more", b.Path)
	last := words.String()
	switch module := missingModule(last); {
	case module != "":
		text = fmt.Sprintf("its Python lacks the module %q", module)
		remedy, last = howToInstall(module, interpreterOf(b.Path)), ""
	case strings.Contains(text, "Unrecognized remote plugin message"), strings.Contains(text, "failed to read any lines"):
		text = "it is not a plugin of Quartet, or printed something before it was ready: " + text
		remedy = "a plugin calls sdk.Main and prints nothing to stdout before"
	case strings.Contains(text, "ncompatible"):
		text = "it speaks another protocol: " + text
		remedy = fmt.Sprintf("this quartet speaks protocol %d to %d: rebuild the plugin", wire.MinProtocol, wire.Protocol)
	case strings.Contains(text, "timeout"):
		text = fmt.Sprintf("it was not ready after %v", b.startTimeout())
		remedy = "raise plugin.start_timeout if it needs the time"
	}
	if last != "" {
		text += fmt.Sprintf("; its last words: %q", last)
	}
	return fmt.Errorf("start plugin %q (%s): %s; %s", b.Name, b.Path, text, remedy)
}

// dialled hands out the connection itself.
type dialled struct{ plugin.NetRPCUnsupportedPlugin }

func (dialled) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host calls; the plugin serves")
}

func (dialled) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// tail keeps the end of a stream.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailLength = 8 << 10

// Write keeps the last of it.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailLength; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// String is the line that says most: why a Go program crashed, or the last one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// DefaultStartTimeout is how long a plugin may take to be ready, unless a config says otherwise.
const DefaultStartTimeout = 10 * time.Second
