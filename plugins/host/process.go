package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Binary is a plugin to start.
type Binary struct {
	Name         string // for messages
	Path         string
	Args         []string
	SHA256       string   // hex; a binary with another hash is not started. Empty for our own executable
	Environment  []string // names of the variables it may see, besides those of every plugin
	StartTimeout time.Duration
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
	Conn   *grpc.ClientConn
	client *plugin.Client
	stderr *tail
	folder string
}

// Start starts the plugin and shakes hands. It ends with the process.
func (b Binary) Start(ctx context.Context) (*Process, error) {
	secure, err := b.verify()
	if err != nil {
		return nil, b.failed(err, nil)
	}
	folder, err := os.MkdirTemp("", "quartet-")
	if err != nil {
		return nil, b.failed(err, nil)
	}
	command := exec.Command(b.Path, b.Args...)
	command.Env = b.environment()
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
		AutoMTLS:         true,
		SkipHostEnv:      true,
		SecureConfig:     secure,
		StartTimeout:     max(b.StartTimeout, time.Second),
		Logger:           newLogger(log, b.Name),
		Stderr:           words,
		SyncStdout:       io.Discard,
		SyncStderr:       io.Discard,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: folder},
		GRPCDialOptions:  []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage))},
	})
	p := &Process{client: client, stderr: words, folder: folder}
	stop := context.AfterFunc(ctx, client.Kill)
	defer stop()
	protocol, err := client.Client()
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

// Close ends the process.
func (p *Process) Close() {
	p.client.Kill()
	os.RemoveAll(p.folder)
}

// LastWords is the end of what the process wrote to stderr.
func (p *Process) LastWords() string { return p.stderr.String() }

// Session starts the plugin and configures one component in it. Problems in the settings are core.Diagnostics.
func (b Binary) Session(ctx context.Context, c Component) (*Session, error) {
	p, err := b.Start(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := Configure(ctx, p.Conn, c, false); err != nil {
		p.Close()
		var problems core.Diagnostics
		if errors.As(err, &problems) {
			return nil, err
		}
		return nil, b.failed(err, p.stderr)
	}
	return &Session{Conn: p.Conn, Close: p.Close, LastWords: p.LastWords}, nil
}

// Configure creates a component at the other end of a connection, or only checks its settings. Problems in the
// settings are core.Diagnostics, with paths relative to the settings.
func Configure(ctx context.Context, conn grpc.ClientConnInterface, c Component, checkOnly bool) (*stagev1.ConfigureResponse, error) {
	settings, err := json.Marshal(c.Config)
	if err != nil {
		return nil, fmt.Errorf("settings of %q: %w", c.ID, err)
	}
	answer, err := stagev1.NewBaseServiceClient(conn).Configure(ctx, &stagev1.ConfigureRequest{
		Stage: c.Stage, Type: c.Type, ComponentId: c.ID, Seed: c.Seed, ConfigJson: string(settings), CheckOnly: checkOnly,
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

// Describe asks the process what it holds, and refuses one that speaks no version of the contract that we speak.
func Describe(ctx context.Context, conn grpc.ClientConnInterface) (*stagev1.DescribeResponse, error) {
	answer, err := stagev1.NewBaseServiceClient(conn).Describe(ctx, &stagev1.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	if answer.GetMinProtocol() > wire.Protocol || answer.GetMaxProtocol() < wire.MinProtocol {
		return nil, fmt.Errorf("the plugin speaks protocol %d to %d, this quartet %d to %d; rebuild the plugin, or use another quartet",
			answer.GetMinProtocol(), answer.GetMaxProtocol(), wire.MinProtocol, wire.Protocol)
	}
	return answer, nil
}

// verify holds the binary against its hash and against carelessness with permissions.
func (b Binary) verify() (*plugin.SecureConfig, error) {
	if err := checkFile(b.Path); err != nil {
		return nil, err
	}
	if b.SHA256 == "" {
		return nil, nil
	}
	sum, err := hex.DecodeString(b.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("the recorded sha256 %q is no hash", b.SHA256)
	}
	if got, err := HashFile(b.Path); err != nil {
		return nil, err
	} else if got != b.SHA256 {
		return nil, fmt.Errorf("its sha256 is %s, but %s was installed; run `quartet plugin install` again if you trust the new one", got, b.SHA256)
	}
	return &plugin.SecureConfig{Checksum: sum, Hash: sha256.New()}, nil // anew for each start: the hash is never reset
}

// checkFile refuses what others could have replaced, and what cannot be started.
func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not executable; chmod +x it", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others; chmod go-w it", path)
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if folder.Mode().Perm()&0o022 != 0 && folder.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("the folder of %s can be written by others; chmod go-w it", path)
	}
	return nil
}

// HashFile is the sha256 of a file, hex.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
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

// failed words a failure to start.
func (b Binary) failed(err error, words *tail) error {
	text := strings.TrimSpace(strings.SplitN(err.Error(), "\n", 2)[0])
	remedy := fmt.Sprintf("`quartet plugin test %s` says more", b.Path)
	switch {
	case strings.Contains(text, "Unrecognized remote plugin message"), strings.Contains(text, "failed to read any lines"):
		text = "it is not a plugin of Quartet, or printed something before it was ready: " + text
		remedy = "a plugin calls sdk.Main and prints nothing to stdout before"
	case strings.Contains(text, "ncompatible"):
		text = "it speaks another protocol: " + text
		remedy = fmt.Sprintf("this quartet speaks protocol %d to %d: rebuild the plugin", wire.MinProtocol, wire.Protocol)
	case strings.Contains(text, "timeout"):
		text = fmt.Sprintf("it was not ready after %v", max(b.StartTimeout, time.Second))
		remedy = "raise plugin.start_timeout if it needs the time"
	}
	if words != nil {
		if last := words.String(); last != "" {
			text += fmt.Sprintf("; its last words: %q", last)
		}
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

const tailLength = 2000

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

// String is the last line or lines, as far as they say something.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(lines[max(len(lines)-3, 0):], " | ")
}

// DefaultStartTimeout is how long a plugin may take to be ready, unless a config says otherwise.
const DefaultStartTimeout = 10 * time.Second
