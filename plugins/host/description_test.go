package host

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// answering answers every call so, and notes the request.
type answering struct {
	answer  proto.Message // nil fails
	request proto.Message
}

func (a *answering) Invoke(_ context.Context, _ string, request, answer any, _ ...grpc.CallOption) error {
	a.request = request.(proto.Message)
	if a.answer == nil {
		return errRefused
	}
	proto.Merge(answer.(proto.Message), a.answer)
	return nil
}

func (*answering) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errRefused
}

var errRefused = errors.New("refused")

func TestADescriptionIsTakenIn(t *testing.T) {
	conn := &answering{answer: &stagev1.DescribeResponse{
		Name: "p", Version: "v1.2.0", MinProtocol: 1, MaxProtocol: 7,
		Components: []*stagev1.Component{
			{
				Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "fair", Summary: "s", Description: "d\ne", Source: "o", OneType: true,
				Capabilities: []string{"scale_jobs", "x"}, FieldsJson: `[{"Name": "a"}]`, ConfigSchemaJson: `{"type": "object"}`,
			},
			{Stage: stagev1.Stage_STAGE_PLACEMENT, Type: "fair"},
			{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "unfair"},
		},
	}}
	got, err := Describe(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	want := &Description{Name: "p", Version: "v1.2.0", Protocol: 7, Components: []ComponentInfo{
		{
			Info: core.Info{
				Type: "fair", Summary: "s", Description: "d\ne", Source: "o", OneType: true, Capabilities: []core.Capability{"scale_jobs", "x"},
			},
			Stage: stagev1.Stage_STAGE_ALLOCATION, Fields: []core.Field{{Name: "a"}}, Schema: map[string]any{"type": "object"},
		},
		{Info: core.Info{Type: "fair", Capabilities: []core.Capability{}}, Stage: stagev1.Stage_STAGE_PLACEMENT},
		{Info: core.Info{Type: "unfair", Capabilities: []core.Capability{}}, Stage: stagev1.Stage_STAGE_ALLOCATION},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, tc := range map[string]struct {
		stage stagev1.Stage
		typed string
		want  int // -1 for none
	}{
		"the first":     {stagev1.Stage_STAGE_ALLOCATION, "fair", 0},
		"another stage": {stagev1.Stage_STAGE_PLACEMENT, "fair", 1},
		"another type":  {stagev1.Stage_STAGE_ALLOCATION, "unfair", 2},
		"none":          {stagev1.Stage_STAGE_PLACEMENT, "unfair", -1},
	} {
		t.Run(name, func(t *testing.T) {
			found, ok := got.Component(tc.stage, tc.typed)
			if ok != (tc.want >= 0) || ok && !cmp.Equal(found, got.Components[tc.want]) {
				t.Errorf("%v, found: %v", found, ok)
			}
		})
	}
}

func TestADescriptionThatIsRefused(t *testing.T) {
	component := func(c *stagev1.Component) *stagev1.DescribeResponse {
		c.Stage, c.Type = stagev1.Stage_STAGE_ALLOCATION, "fair"
		return &stagev1.DescribeResponse{MinProtocol: 1, MaxProtocol: 1, Components: []*stagev1.Component{c}}
	}
	for name, tc := range map[string]struct {
		answer proto.Message
		want   string // empty for none
	}{
		"none":             {nil, "refused"},
		"an older plugin":  {&stagev1.DescribeResponse{MinProtocol: 0, MaxProtocol: 0}, "the plugin speaks protocol 0 to 0, this quartet 1 to 1"},
		"a newer plugin":   {&stagev1.DescribeResponse{MinProtocol: wire.Protocol + 1, MaxProtocol: 9}, "the plugin speaks protocol 2 to 9, this quartet 1 to 1"},
		"one of both":      {&stagev1.DescribeResponse{MinProtocol: wire.Protocol, MaxProtocol: 9}, ""},
		"odd fields":       {component(&stagev1.Component{FieldsJson: "{"}), `fields_json of "allocation/fair": `},
		"an odd schema":    {component(&stagev1.Component{ConfigSchemaJson: "["}), `config_schema_json of "allocation/fair": `},
		"no fields at all": {component(&stagev1.Component{}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			told, err := Describe(t.Context(), &answering{answer: tc.answer})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, error %v; want %q", told, err, tc.want)
			}
		})
	}
}

func TestLinesOfADescription(t *testing.T) {
	long := strings.Repeat("x\n", longestDescription+3)
	for name, tc := range map[string]struct{ text, want string }{
		"empty":          {"", ""},
		"two":            {"a\x00\nb", "a\nb"},
		"a blank line":   {"a\n\nb\n", "a\n\nb\n"},
		"the most":       {long[:2*longestDescription-1], long[:2*longestDescription-1]},
		"more are gone":  {long, long[:2*longestDescription-1]},
		"one more, none": {long[:2*longestDescription], long[:2*longestDescription-1]},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cleanLines(tc.text); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Settings go to the plugin as they are, and its problems come back as diagnostics, so many at most.
func TestConfigure(t *testing.T) {
	c := Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "fair", ID: "allocation/fair", Seed: 9, Config: map[string]any{"a": 1}}
	many := make([]*stagev1.Diagnostic, mostProblems+1)
	for i := range many {
		many[i] = &stagev1.Diagnostic{Path: "a", Summary: "wrong\x00", Hint: "h"}
	}
	for name, tc := range map[string]struct {
		config   map[string]any
		answer   proto.Message
		problems int
		want     string
	}{
		"good":                  {c.Config, &stagev1.ConfigureResponse{}, 0, ""},
		"a problem":             {c.Config, &stagev1.ConfigureResponse{Diagnostics: many[:1]}, 1, "a: wrong"},
		"too many":              {c.Config, &stagev1.ConfigureResponse{Diagnostics: many}, mostProblems, "a: wrong"},
		"a failed call":         {c.Config, nil, 0, "refused"},
		"settings without JSON": {map[string]any{"a": func() {}}, &stagev1.ConfigureResponse{}, 0, `settings of "allocation/fair": `},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &answering{answer: tc.answer}
			c := c
			c.Config = tc.config
			_, err := Configure(t.Context(), conn, c, true)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			var problems core.Diagnostics
			if errors.As(err, &problems); len(problems) != tc.problems {
				t.Errorf("%d problems, want %d", len(problems), tc.problems)
			}
			want := &stagev1.ConfigureRequest{
				Stage: c.Stage, Type: "fair", ComponentId: "allocation/fair", Seed: 9, ConfigJson: `{"a":1}`, CheckOnly: true,
			}
			if conn.request != nil && !proto.Equal(conn.request, want) {
				t.Errorf("asked %v, want %v", conn.request, want)
			}
		})
	}
}
