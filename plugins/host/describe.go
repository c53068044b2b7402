package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Description holds what a plugin reports about itself.
type Description struct {
	Name       string          // Name of the plugin, such as "fair-share".
	Version    string          // Version of the plugin, such as "v1.2.0".
	Protocol   int             // Protocol is the latest version of the contract that the plugin speaks.
	Components []ComponentInfo // Components are its policies, in its order.
}

// ComponentInfo holds what a plugin reports about one of its policies.
type ComponentInfo struct {
	core.Info
	Stage  stagev1.Stage  // Stage of the policy.
	Fields []core.Field   // Fields documents its settings, in order.
	Schema map[string]any // Schema is the JSON Schema of its settings; empty for none.
}

// ID returns the component id, such as "allocation/backfill".
func (c ComponentInfo) ID() string { return wire.StageName(c.Stage) + "/" + c.Type }

// Component returns what the plugin reports about one component, and whether it has it.
func (d *Description) Component(stage stagev1.Stage, typeName string) (ComponentInfo, bool) {
	for _, c := range d.Components {
		if c.Stage == stage && c.Type == typeName {
			return c, true
		}
	}
	return ComponentInfo{}, false
}

// Describe asks a plugin which components it serves. It fails for a plugin that speaks no version of the contract that this program speaks.
func Describe(ctx context.Context, conn grpc.ClientConnInterface) (*Description, error) {
	answer, err := stagev1.NewBaseServiceClient(conn).Describe(ctx, &stagev1.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	if answer.GetMinProtocol() > wire.Protocol || answer.GetMaxProtocol() < wire.MinProtocol {
		return nil, fmt.Errorf("the plugin speaks protocol %d to %d, this quartet %d to %d; rebuild the plugin, or use another quartet",
			answer.GetMinProtocol(), answer.GetMaxProtocol(), wire.MinProtocol, wire.Protocol)
	}
	d := &Description{
		Name: core.CleanText(answer.GetName(), longestQuote), Version: core.CleanText(answer.GetVersion(), longestQuote),
		Protocol: int(answer.GetMaxProtocol()),
	}
	for _, c := range answer.GetComponents() {
		if !fits(c.GetType(), typePattern) {
			return nil, fmt.Errorf("the plugin calls a component %q; its author must name it in lower_snake_case, with at most %d letters",
				core.CleanText(c.GetType(), longestQuote), longestName)
		}
		info := ComponentInfo{Stage: c.GetStage(), Info: core.Info{
			Type: c.GetType(), Summary: core.CleanText(c.GetSummary(), core.MaxText), Description: cleanLines(c.GetDescription()),
			Source: core.CleanText(c.GetSource(), core.MaxText), Capabilities: capabilities(c.GetCapabilities()), OneType: c.GetOneType(),
			Counts: c.GetCounts(), Divides: c.GetDivides(), Sharing: wire.SharingsFrom(c.GetSharing()),
		}}
		if err := unmarshal(c.GetFieldsJson(), &info.Fields); err != nil {
			return nil, fmt.Errorf("fields_json of %q: %w", info.ID(), err)
		}
		cleanFields(info.Fields)
		if err := unmarshal(c.GetConfigSchemaJson(), &info.Schema); err != nil {
			return nil, fmt.Errorf("config_schema_json of %q: %w", info.ID(), err)
		}
		d.Components = append(d.Components, info)
	}
	return d, nil
}

// longestDescription bounds the description of a component, in lines.
const longestDescription = 200

// cleanLines is core.CleanText of each line.
func cleanLines(text string) string {
	lines := strings.SplitN(text, "\n", longestDescription+1)
	lines = lines[:min(len(lines), longestDescription)]
	for i, line := range lines {
		lines[i] = core.CleanText(line, core.MaxText)
	}
	return strings.Join(lines, "\n")
}

// cleanFields removes control characters and excess length from the documentation of settings.
func cleanFields(fields []core.Field) {
	for i := range fields {
		f := &fields[i]
		for _, text := range []*string{&f.Name, &f.Type, &f.Doc, &f.Default, &f.Min, &f.Max} {
			*text = core.CleanText(*text, core.MaxText)
		}
		for k := range f.Enum {
			f.Enum[k] = core.CleanText(f.Enum[k], core.MaxText)
		}
		cleanFields(f.Fields)
	}
}

// unmarshal reads JSON; an empty text leaves the value as it is.
func unmarshal(text string, into any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

func capabilities(names []string) []core.Capability {
	list := make([]core.Capability, len(names))
	for i, name := range names {
		list[i] = core.Capability(name)
	}
	return list
}

// Describe starts the plugin, asks it which components it serves, and ends it.
func (b Binary) Describe(ctx context.Context) (*Description, error) {
	p, err := b.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return b.describe(ctx, p)
}

// describe calls Describe within the time that a start may take, and explains its failure.
func (b Binary) describe(ctx context.Context, p *Process) (*Description, error) {
	timed, cancel := context.WithTimeout(ctx, b.startTimeout())
	defer cancel()
	d, err := Describe(timed, p.Conn)
	if err == nil {
		return d, nil
	}
	return nil, b.explain(ctx, timed, p, err)
}
