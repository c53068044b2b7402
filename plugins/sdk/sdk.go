// Package sdk serves Quartet policies as a plugin: a process of its own that the host starts and calls.
//
//	func main() { sdk.Main(mypolicy.New()) }
//
// The factory is the very value that would be built in. The SDK keeps the policy's view up to date, guards stdout,
// bounds messages, turns panics into errors, writes structured logs, and ends the process when its host is gone.
package sdk

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/go-plugin"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Factory is a core.Factory of a stage: of core.Admitter, core.Allocator, core.Placer, core.Elasticity or
// core.ClusterScaler.
type Factory interface {
	// Fields describes the settings of the component.
	Fields() []core.Field
	// Schema is the JSON schema of its settings.
	Schema() map[string]any
	// Needs lists the capabilities that the component needs when it is configured so.
	Needs(config any) []core.Capability
	// Decode makes a config of settings, and reports every problem of them.
	Decode(raw map[string]any) (config any, problems core.Diagnostics)
}

// Main serves factories until the host is done, and does not return. Started by hand it says what it is.
func Main(factories ...Factory) {
	out := guardStdout()
	server, err := newServer(factories, slog.New(newLogHandler(os.Stderr)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Getenv(wire.Handshake.MagicCookieKey) != wire.Handshake.MagicCookieValue {
		help(out, server)
		os.Exit(0)
	}
	go endWithHost()
	if channel := inheritChannel(); channel != nil {
		server.channel = true
		go server.serveChannel(channel)
	}
	os.Stdout = out // go-plugin writes the handshake there, and takes it over
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{wire.Protocol: {wire.PluginName: &served{server: server}}},
		GRPCServer:       server.newGRPCServer,
		Logger:           quiet,
	})
	server.closePolicy()
	os.Exit(0)
}

// help is what a person sees who starts a plugin.
func help(w io.Writer, s *server) {
	file := filepath.Base(os.Args[0])
	fmt.Fprintf(w, "%s %s is a plugin of Quartet, which starts it. It serves:\n", name(), version())
	for _, c := range s.components {
		fmt.Fprintf(w, "  %s/%s: %s\n", wire.StageName(c.stage), c.info.Type, c.info.Summary)
	}
	fmt.Fprintf(w, "Try it:    quartet plugin test ./%s\nInstall:   quartet plugin install ./%s\n", file, file)
}

// major is the end of the path of a module from its second major version on.
var major = regexp.MustCompile(`^(.*)/v([2-9]|[1-9][0-9]+)$`)

// name is that of the plugin.
func name() string {
	built := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.Path
	}
	return nameOf(built, os.Args[0])
}

// nameOf is the name of the package that a plugin was built from, or where that says nothing of its file.
func nameOf(built, file string) string {
	if strings.Contains(built, "/") {
		return path.Base(major.ReplaceAllString(built, "$1"))
	}
	file, _, _ = strings.Cut(filepath.Base(file), "_")
	return strings.TrimPrefix(file, "quartet-plugin-")
}

// version is that of the module the plugin was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return "v0.0.0-devel"
}
