package wire

import (
	"slices"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Handshake is how host and plugin recognise each other. The cookie is no secret: it keeps people from starting a
// plugin by hand and waiting for something to happen.
var Handshake = plugin.HandshakeConfig{
	MagicCookieKey:   "QUARTET_PLUGIN",
	MagicCookieValue: "d0a1d3f3-9d5f-4f6b-8f0c-4f9c5a1e7b52",
}

// Protocol is the version of the contract, the package quartet.stage.v1. A host speaks all from MinProtocol on.
const (
	MinProtocol = 1
	Protocol    = 1
)

// PluginName is the one name under which a process serves its services.
const PluginName = "stage"

// MaxMessage bounds one message in bytes.
const MaxMessage = 64 << 20

// window is how much one end may send before the other has read it. Stating it keeps gRPC from measuring the connection
// with a ping for each message, which would double the wake-ups of a call.
const window = 1 << 20

// DialOptions are those of a host's connection.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
	}
}

// ServerOptions are those of a plugin's server.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
	}
}

// StageOf is the stage of a slot's interface S (core.Admitter, …); unspecified for any other type.
func StageOf[S any]() stagev1.Stage {
	switch any((*S)(nil)).(type) {
	case *core.Admitter:
		return stagev1.Stage_STAGE_ADMISSION
	case *core.Allocator:
		return stagev1.Stage_STAGE_ALLOCATION
	case *core.Placer:
		return stagev1.Stage_STAGE_PLACEMENT
	case *core.Elasticity:
		return stagev1.Stage_STAGE_ELASTICITY
	case *core.ClusterScaler:
		return stagev1.Stage_STAGE_SCALER
	default:
		return stagev1.Stage_STAGE_UNSPECIFIED
	}
}

var stageNames = []string{"", "admission", "allocation", "placement", "elasticity", "scaler"}

// StageName is the name of a stage in component ids; empty for an unspecified one.
func StageName(s stagev1.Stage) string {
	if s < 0 || int(s) >= len(stageNames) {
		return ""
	}
	return stageNames[s]
}

// StageNamed is the inverse of StageName; unspecified for any other text.
func StageNamed(name string) stagev1.Stage {
	return stagev1.Stage(max(slices.Index(stageNames, name), 0))
}

// SocketFolder begins the name of the folder that a host makes for the socket of one plugin.
const SocketFolder = "quartet-"
