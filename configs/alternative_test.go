package configs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The config in which another alternative decides reads back as the same, with that alternative as its pipeline, and leads back to the first one.
func TestChoosingReadsBack(t *testing.T) {
	const text = `
version: 1
cluster: {nodes: [{name: a, accelerator: t4, devices: 4}]}
workload: {type: generated}
round: {interval: 5m, on_events: true}
pipeline: {allocation: {type: tiresias, config: {thresholds: [100]}}}
synthesizer:
  own: queues
  candidates:
    - {name: las, pipeline: {allocation: {type: las}}}
    - {name: faster, pipeline: {allocation: {type: tiresias}}, round: {interval: 1m}}
`
	c := mustParse(t, text, Options{})
	names := func(c *Config) (list []string) {
		for i := range c.Alternatives {
			list = append(list, c.Alternatives[i].Name)
		}
		return list
	}
	resolved := func(c *Config) string {
		text, err := c.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for i, want := range [][]string{{"queues", "las", "faster"}, {"las", "queues", "faster"}, {"faster", "queues", "las"}} {
		chosen := c.ForAlternative(i)
		again := mustParse(t, resolved(chosen), Options{})
		if diff := cmp.Diff(resolved(chosen), resolved(again)); diff != "" {
			t.Errorf("%d does not read back as the same (-was +is):\n%s", i, diff)
		}
		if diff := cmp.Diff(want, names(again)); diff != "" {
			t.Errorf("alternatives of %d (-want +got):\n%s", i, diff)
		}
		if is, was := again.stagesText(), c.Alternatives[i].Config.stagesText(); is != was {
			t.Errorf("%d decides by\n%s\nwant\n%s", i, is, was)
		}
	}
	if diff := cmp.Diff(resolved(c), resolved(c.ForAlternative(0))); diff != "" {
		t.Errorf("the first one (-want +got):\n%s", diff)
	}
}
