package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// server holds what a plugin process can serve, and the one component that it does serve once it is configured.
type server struct {
	stagev1.UnimplementedBaseServiceServer
	components []component
	calls      map[string]call // of the stage services, by full name
	log        *slog.Logger
	channel    bool // calls are taken over it, too

	mu     sync.Mutex     // one call at a time, as in process
	policy any            // the component; nil before Configure
	can    core.Abilities // of the policy
	view   wire.Copy
	lists  lists
}

// component is a factory with its stage known.
type component struct {
	Factory
	stage stagev1.Stage
	info  core.Info
	build func(config any, s core.Settings) (any, error)
}

func newServer(factories []Factory, log *slog.Logger) (*server, error) {
	if len(factories) == 0 {
		return nil, errors.New("a plugin needs at least one factory to serve")
	}
	s := &server{log: log, calls: make(map[string]call)}
	for _, f := range factories {
		c, err := componentOf(f)
		if err != nil {
			return nil, err
		}
		s.components = append(s.components, c)
	}
	return s, nil
}

func componentOf(f Factory) (component, error) {
	switch f := f.(type) {
	case core.Factory[core.Admitter]:
		return typed(f), nil
	case core.Factory[core.Allocator]:
		return typed(f), nil
	case core.Factory[core.Placer]:
		return typed(f), nil
	case core.Factory[core.Elasticity]:
		return typed(f), nil
	case core.Factory[core.ClusterScaler]:
		return typed(f), nil
	default:
		return component{}, fmt.Errorf("%T is a factory of no stage", f)
	}
}

func typed[S any](f core.Factory[S]) component {
	return component{
		Factory: f, stage: wire.StageOf[S](), info: f.Info,
		build: func(config any, s core.Settings) (any, error) { return f.New(config, s) },
	}
}

// Register serves factories on a gRPC server of the caller's, as Main does in a process of its own.
func Register(g *grpc.Server, log *slog.Logger, factories ...Factory) error {
	s, err := newServer(factories, log)
	if err != nil {
		return err
	}
	s.register(g)
	return nil
}

func (s *server) register(g *grpc.Server) {
	stagev1.RegisterBaseServiceServer(g, s)
	for _, stage := range []struct {
		service        *grpc.ServiceDesc
		implementation any
	}{
		{&stagev1.AdmissionService_ServiceDesc, admission{server: s}},
		{&stagev1.AllocationService_ServiceDesc, allocation{server: s}},
		{&stagev1.PlacementService_ServiceDesc, placement{server: s}},
		{&stagev1.ElasticityService_ServiceDesc, elasticity{server: s}},
		{&stagev1.ScalerService_ServiceDesc, scaler{server: s}},
	} {
		g.RegisterService(stage.service, stage.implementation)
		s.takeCalls(stage.service, stage.implementation)
	}
}

// served ties the server to go-plugin.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

func (p *served) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	p.server.register(g)
	return nil
}

func (p *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("the SDK serves; the host calls")
}

// Describe says what the plugin holds.
func (s *server) Describe(context.Context, *stagev1.DescribeRequest) (*stagev1.DescribeResponse, error) {
	answer := &stagev1.DescribeResponse{
		Name: name(), Version: version(), MinProtocol: wire.MinProtocol, MaxProtocol: wire.Protocol,
	}
	for _, c := range s.components {
		schema, err := json.Marshal(c.Schema())
		if err != nil {
			return nil, status.Errorf(codes.Internal, "schema of %q: %v", c.info.Type, err)
		}
		fields, err := json.Marshal(c.Fields())
		if err != nil {
			return nil, status.Errorf(codes.Internal, "fields of %q: %v", c.info.Type, err)
		}
		described := &stagev1.Component{
			Stage: c.stage, Type: c.info.Type, Summary: c.info.Summary, Description: c.info.Description,
			Source: c.info.Source, ConfigSchemaJson: string(schema), FieldsJson: string(fields),
			OneType: c.info.OneType, Counts: c.info.Counts, Divides: c.info.Divides, Sharing: wire.Sharings(c.info.Sharing),
		}
		for _, need := range c.info.Capabilities {
			described.Capabilities = append(described.Capabilities, string(need))
		}
		answer.Components = append(answer.Components, described)
	}
	return answer, nil
}

// Configure creates the component that this process serves from now on.
func (s *server) Configure(_ context.Context, q *stagev1.ConfigureRequest) (*stagev1.ConfigureResponse, error) {
	c, err := s.find(q.GetStage(), q.GetType())
	if err != nil {
		return nil, err
	}
	raw, err := wire.SettingsFrom(q.GetConfigJson())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	config, problems := c.Decode(raw)
	answer := &stagev1.ConfigureResponse{}
	for _, p := range problems {
		answer.Diagnostics = append(answer.Diagnostics, &stagev1.Diagnostic{Path: p.Path, Summary: p.Summary, Hint: p.Hint})
	}
	if len(problems) > 0 {
		return answer, nil
	}
	for _, need := range c.Needs(config) {
		answer.Capabilities = append(answer.Capabilities, string(need))
	}
	full, err := json.Marshal(core.Encode(config))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "config: %v", err)
	}
	answer.ConfigJson = string(full)
	if q.GetCheckOnly() {
		return answer, nil
	}
	policy, err := c.build(config, core.Settings{
		ID: q.GetComponentId(), Rand: core.NewRand(q.GetSeed(), q.GetComponentId()), Log: s.log.With("component", q.GetComponentId()),
	})
	if err != nil {
		answer.Diagnostics = append(answer.Diagnostics, &stagev1.Diagnostic{Summary: err.Error()})
		return answer, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy, s.can, s.view = policy, core.AbilitiesOf(policy), wire.Copy{}
	s.lists = newLists()
	answer.Exchange, answer.Channel = true, s.channel && q.GetChannel()
	wire.AbilitiesOf(policy).Report(answer)
	return answer, nil
}

func (s *server) find(stage stagev1.Stage, typeName string) (component, error) {
	var there []string
	for _, c := range s.components {
		if c.stage == stage && c.info.Type == typeName {
			return c, nil
		}
		there = append(there, wire.StageName(c.stage)+"/"+c.info.Type)
	}
	return component{}, status.Errorf(codes.NotFound, "no component %q; the plugin serves %v", wire.StageName(stage)+"/"+typeName, there)
}

// Health answers while calls can be taken.
func (s *server) Health(context.Context, *stagev1.HealthRequest) (*stagev1.HealthResponse, error) {
	return &stagev1.HealthResponse{}, nil
}

// closePolicy closes the component, if it has something to close and is not in a call, when the host has asked the process to
// end. The host waits for it as long as for any process.
func (s *server) closePolicy() {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if c := s.can.Closer; c != nil {
		if err := c.Close(); err != nil {
			s.log.Error("the policy did not close", "error", err)
		}
	}
}
