package yamlpos_test

import (
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// A text reads back as it is, wherever it stands.
func TestTextReadsBack(t *testing.T) {
	odd := []string{"", "yes", "null", "~", "1e3", "- a", "a: b", "#", "\t\n", "\ta\n", "a\n\tb\n", "\n a", " a\nb", "a\n\nb\n", "\u0085\n", "\u2028\n", "n"}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom(odd), rapid.String()).Draw(t, "text")
		n := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			yamlpos.Text("plain"), {Kind: yaml.MappingNode, Content: []*yaml.Node{yamlpos.Text(text), yamlpos.Text(text)}},
		}}
		written, err := yaml.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]map[string]string
		if err := yaml.Unmarshal(written, &back); err != nil {
			t.Fatalf("%q is written as\n%s: %v", text, written, err)
		}
		if got, ok := back["plain"][text]; !ok || got != text {
			t.Fatalf("%q is written as\n%s, and read as %q", text, written, back)
		}
	})
}
