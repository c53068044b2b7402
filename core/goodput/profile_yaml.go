package goodput

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// ReadProfile reads a profile from a file of one YAML document; file is named in problems. It is strict, and reports every problem at
// once as core.Diagnostics.
func ReadProfile(file string, text []byte) (Profile, error) {
	var p Profile
	err := yamlpos.Decode(file, text, &p)
	return p, err
}

// YAML is the profile as ReadProfile reads it, in the order of its fields.
func (p *Profile) YAML() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("version: %d", p.Version)
	line("name: %q", p.Name)
	line("batch: {%s}", flow(&p.Batch))
	line("max_replicas: %d", p.MaxReplicas)
	line("epochs: %d", p.Epochs)
	line("iterations_per_epoch: %s", number(p.IterationsPerEpoch))
	line("performance:")
	for i, f := range core.FieldsOf(&p.Performance) {
		line("  %s: %s", f.Name, number(p.Performance.vector()[i]))
	}
	line("noise:")
	for i := range p.Noise {
		line("  - {%s}", flow(&p.Noise[i]))
	}
	if p.Sensitivity.Of() != nil {
		line("sensitivity: {%s}", flow(&p.Sensitivity))
	}
	line("residuals: {%s}", flow(&p.Residuals))
	return b.Bytes()
}

// flow writes a struct of numbers on one line.
func flow(config any) string {
	values := core.Encode(config)
	var parts []string
	for _, f := range core.FieldsOf(config) {
		text := fmt.Sprint(values[f.Name])
		if x, fractional := values[f.Name].(float64); fractional {
			text = number(x)
		}
		parts = append(parts, f.Name+": "+text)
	}
	return strings.Join(parts, ", ")
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
