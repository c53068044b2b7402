package host

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// The handshake is go-plugin's: one line on stdout,
//
//	CORE-PROTOCOL | PROTOCOL | NETWORK | ADDRESS | "grpc" | CERTIFICATE
//
// We read it, and everything else that a plugin writes, ourselves: that library's client parses each line of stderr as a
// log entry, panics on some, and waits for ever on a pipe that a child of the plugin holds.
const (
	coreProtocol     = 1
	longestHandshake = 16 << 10
)

// The variables that tell a plugin of its host, besides the cookie.
const (
	envHostCertificate = "PLUGIN_CLIENT_CERT"
	envSocketFolder    = "PLUGIN_UNIX_SOCKET_DIR"
	envProtocols       = "PLUGIN_PROTOCOL_VERSIONS"
	envLeastPort       = "PLUGIN_MIN_PORT"
	envHighestPort     = "PLUGIN_MAX_PORT"
)

func handshakeEnvironment(certificate, folder string) []string {
	return []string{
		wire.Handshake.MagicCookieKey + "=" + wire.Handshake.MagicCookieValue,
		envProtocols + "=" + strconv.Itoa(wire.Protocol),
		envLeastPort + "=10000", envHighestPort + "=25000",
		envHostCertificate + "=" + certificate, envSocketFolder + "=" + folder,
	}
}

// errNoPlugin and errProtocol are the failures of a handshake of which the remedy is known.
var (
	errNoPlugin = errors.New("it is not a plugin of Quartet, or printed something before it was ready")
	errProtocol = errors.New("it speaks another protocol")
)

// address is where a plugin listens, and how to trust it.
type address struct {
	network, place string
	certificate    *x509.Certificate
}

// readHandshake reads the first line of a plugin's stdout.
func readHandshake(stdout *bufio.Reader) (address, error) {
	var line []byte
	for {
		b, err := stdout.ReadByte()
		if err != nil && !errors.Is(err, io.EOF) {
			return address{}, err
		}
		if err != nil && len(line) == 0 {
			return address{}, fmt.Errorf("%w: it ended, or closed its stdout, without a word there", errNoPlugin)
		}
		if err != nil || b == '\n' {
			return parseHandshake(strings.TrimSpace(string(line)))
		}
		if line = append(line, b); len(line) > longestHandshake {
			return address{}, fmt.Errorf("%w: its first line is longer than %d bytes", errNoPlugin, longestHandshake)
		}
	}
}

func parseHandshake(line string) (address, error) {
	parts := strings.Split(line, "|")
	if len(parts) < 5 {
		return address{}, fmt.Errorf("%w: %q", errNoPlugin, core.CleanText(line, longestQuote))
	}
	if n, err := strconv.Atoi(parts[0]); err != nil || n != coreProtocol {
		return address{}, fmt.Errorf("%w: handshake %q, ours is %d", errProtocol, core.CleanText(parts[0], longestQuote), coreProtocol)
	}
	if n, err := strconv.Atoi(parts[1]); err != nil || n < wire.MinProtocol || n > wire.Protocol {
		return address{}, fmt.Errorf("%w: version %q", errProtocol, core.CleanText(parts[1], longestQuote))
	}
	a := address{network: parts[2], place: parts[3]}
	if a.network != "unix" && a.network != "tcp" || parts[4] != "grpc" {
		return address{}, fmt.Errorf("%w: %s over %s, must be grpc over unix or tcp", errProtocol,
			core.CleanText(parts[4], longestQuote), core.CleanText(a.network, longestQuote))
	}
	if len(parts) < 6 || parts[5] == "" {
		return address{}, fmt.Errorf("%w: no certificate in its handshake", errProtocol)
	}
	der, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(parts[5], "="))
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return address{}, fmt.Errorf("%w: its certificate: %s", errProtocol, core.CleanText(err.Error(), longestQuote))
	}
	return a, nil
}

// dial opens a connection to a plugin, without waiting for it.
func (a address) dial(config *tls.Config) (*grpc.ClientConn, error) {
	config = config.Clone()
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AddCert(a.certificate)
	return grpc.NewClient("passthrough:///plugin", append(wire.DialOptions(),
		grpc.WithIdleTimeout(0),
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, a.network, a.place)
		}))...)
}

// askToEnd asks a plugin to end, as go-plugin does.
func askToEnd(ctx context.Context, conn *grpc.ClientConn) {
	_ = conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}) // it may end before it answers
}
