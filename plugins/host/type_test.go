package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// described is a plugin that describes itself so.
type described struct{ component *stagev1.Component }

func (d described) Invoke(_ context.Context, _ string, _, answer any, _ ...grpc.CallOption) error {
	proto.Merge(answer.(proto.Message), &stagev1.DescribeResponse{
		Name: "odd\x1b[2J", MinProtocol: 1, MaxProtocol: 1, Components: []*stagev1.Component{d.component},
	})
	return nil
}

func (described) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

func TestTypesAreCheckedWhenAPluginDescribesItself(t *testing.T) {
	for name, good := range map[string]bool{
		"fair": true, "fair_share2": true, strings.Repeat("a", 64): true,
		"": false, "../x": false, "a/b": false, "Fair": false, "fair-share": false, "_a": false, "a_": false, "a__b": false, "2a": false,
		"a\n": false, "a\x00": false, "é": false, strings.Repeat("a", 65): false,
	} {
		_, err := host.Describe(t.Context(), described{&stagev1.Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: name}})
		if (err == nil) != good {
			t.Errorf("type %.70q: error %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "lower_snake_case") {
			t.Errorf("type %.70q: error %v, want one that says how to name it", name, err)
		}
	}
}

func TestADescriptionIsCleaned(t *testing.T) {
	told, err := host.Describe(t.Context(), described{&stagev1.Component{
		Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "odd",
		Summary: "\x1b[31mred\x1b[0m" + strings.Repeat("x", 1<<20), Description: strings.Repeat("line\x00\n", 1<<16), Source: "a\nb",
		FieldsJson: `[{"Name": "a", "Doc": "\u001b[2Jdoc", "Enum": ["\u0000"], "Fields": [{"Name": "b", "Default": "\u001b"}]}]`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := told.Components[0]
	all := told.Name + c.Summary + c.Description + c.Source + c.Fields[0].Doc + c.Fields[0].Enum[0] + c.Fields[0].Fields[0].Default
	if strings.ContainsAny(all, "\x00\x1b") || strings.Contains(c.Source, "\n") || len(all) > 10*core.MaxText {
		t.Errorf("%d bytes: %.300q", len(all), all)
	}
	if !strings.HasPrefix(c.Description, "line\nline\n") || c.Fields[0].Doc != "doc" {
		t.Errorf("description %.20q, documentation %q", c.Description, c.Fields[0].Doc)
	}
}
