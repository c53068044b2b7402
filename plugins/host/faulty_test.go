package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/sdk"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// The test binary is also the plugin that goes wrong, and a host that is killed.
const (
	serveFaulty = "serve-faulty"
	printFirst  = "print-first"
	hostPlugin  = "host-plugin"
	killStrays  = "kill-strays"
	serveNamed  = "serve-named" // and a version: a plugin that describes itself and does nothing else
)

func TestMain(m *testing.M) {
	if testing.CoverMode() != "" { // a plugin that cannot write its coverage says so on stderr, as its last output
		if err := os.Setenv("GOCOVERDIR", filepath.Dir(os.Args[0])); err != nil {
			panic(err)
		}
	}
	if len(os.Args) == 4 && os.Args[1] == "plugin" && os.Args[2] == "serve" { // as our executable is started for a component of its own
		fmt.Fprintln(os.Stderr, "serving", os.Args[3])
		sdk.Main(faulty.Factories()...)
	}
	if len(os.Args) == 3 && os.Args[1] == serveNamed {
		plugin.Serve(&plugin.ServeConfig{
			HandshakeConfig:  wire.Handshake,
			VersionedPlugins: map[int]plugin.PluginSet{wire.Protocol: {wire.PluginName: &named{version: os.Args[2]}}},
			GRPCServer:       plugin.DefaultGRPCServer,
		})
		os.Exit(0)
	}
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case printFirst:
			fmt.Println("faulty plugin, version 1")
			sdk.Main(faulty.Factories()...)
		case serveFaulty:
			sdk.Main(append(faulty.Factories(), faulty.Reviewing())...)
		case hostPlugin:
			os.Exit(hostForEver())
		case killStrays:
			os.Exit(killAmongOthers())
		}
	}
	goleak.VerifyTestMain(m)
}

// named is a plugin that has a name and a version, and holds one component of the stages that most have.
type named struct {
	plugin.NetRPCUnsupportedPlugin
	stagev1.UnimplementedBaseServiceServer
	version string
}

func (n *named) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	stagev1.RegisterBaseServiceServer(s, n)
	return nil
}

func (*named) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("it has no client")
}

func (n *named) Describe(context.Context, *stagev1.DescribeRequest) (*stagev1.DescribeResponse, error) {
	return &stagev1.DescribeResponse{
		Name: "named", Version: n.version, MinProtocol: wire.Protocol, MaxProtocol: wire.Protocol,
		Components: []*stagev1.Component{
			{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "named", Summary: "grants"},
			{Stage: stagev1.Stage_STAGE_PLACEMENT, Type: "named", Summary: "seats"},
		},
	}, nil
}

func faultyBinary(mode string) host.Binary {
	return host.Binary{Name: "faulty", Path: os.Args[0], Args: []string{mode}, StartTimeout: 20 * time.Second}
}

// hostForEver starts a plugin, tells its process on stdout, and waits to be killed.
func hostForEver() int {
	p, err := faultyBinary(serveFaulty).Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.PID())
	select {}
}
