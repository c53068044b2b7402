package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
)

// Synthesizer lets the run choose between compositions while it goes on. It is absent where Candidates is empty.
type Synthesizer struct {
	// Method: how candidates are compared: twin or bandit.
	Method string `config:"method" doc:"how candidates are compared: twin simulates each from the present state; bandit goes by what became of jobs under each" enum:"twin|bandit"`
	// Every: rounds from one look to the next.
	Every int `config:"every" doc:"rounds from one look to the next" min:"1"`
	// Pause: time from one look to the next at least.
	Pause time.Duration `config:"pause" doc:"time from one look to the next at least" min:"0s"`
	// Horizon: with twin, how far each look goes.
	Horizon time.Duration `config:"horizon" doc:"with twin, how far each look goes; with bandit, how fast what happened is forgotten. A composition that took over stays for a quarter of it at least" min:"1s" max:"720h"`
	// Draws: with twin, worlds drawn from what is believed, the same for all candidates.
	Draws int `config:"draws" doc:"with twin, worlds drawn from what is believed, the same for all candidates; twice as many for the best of them" min:"2" max:"500"`
	// Objective: what the choice minimises: mean_jct or responsiveness.
	Objective string `config:"objective" doc:"what to minimise: mean_jct, the time that jobs are there; responsiveness, the time until they first run" enum:"mean_jct|responsiveness"`
	// SwitchMargin: part of the objective that a switch must gain, a ratio from 0 to 1.
	SwitchMargin float64 `config:"switch_margin" doc:"part of the objective that a switch must gain" min:"0" max:"1"`
	// Own: name of the composition of pipeline and round, which decides first.
	Own string `config:"own" doc:"name of the composition of pipeline and round, which decides first"`
	// Candidates: the other compositions.
	Candidates []Candidate `config:"candidates" doc:"the other compositions"`
}

// Candidate is another composition of the same run. What it leaves out is as in the config around it.
type Candidate struct {
	// Name: its name, a plain one.
	Name string `config:"name" doc:"its name, a plain one" required:"true"`
	// Pipeline: the stages that differ, each in the form of pipeline.
	Pipeline map[string]any `config:"pipeline" doc:"the stages that differ, each in the form of pipeline"`
	// Round: when decisions are taken, where that differs.
	Round map[string]any `config:"round" doc:"when decisions are taken, where that differs"`
}

// DefaultSynthesizer is a synthesizer without candidates.
func DefaultSynthesizer() Synthesizer {
	return Synthesizer{
		Method: "twin", Every: 10, Pause: 10 * time.Minute, Horizon: 12 * time.Hour, Draws: 4, Objective: "mean_jct", SwitchMargin: 0.02, Own: "own",
	}
}

// said reports whether something else is wanted of it than the defaults, beside candidates.
func (s *Synthesizer) said() bool {
	other := *s
	other.Candidates = nil
	return !reflect.DeepEqual(other, DefaultSynthesizer())
}

// Alternative is a composition between which and others a run chooses.
type Alternative struct {
	// Name: name of the composition.
	Name   string
	Config *Config // of the run, with the policies and rounds of the alternative, and no others to choose from
}

// synthesizerPath is the section of the config.
const synthesizerPath = "synthesizer"

// candidatePath is where a candidate is written.
func candidatePath(i int) string { return fmt.Sprintf("%s.candidates[%d]", synthesizerPath, i) }

// chooseAlternatives loads each candidate as the config around it with other stages, and checks it alike. What is wrong with both is told
// once, of the config.
func (l *loader) chooseAlternatives(c *Config) {
	s := &c.Synthesizer
	if l.wrong[synthesizerPath] {
		return
	}
	if len(s.Candidates) == 0 {
		if s.said() {
			l.report(synthesizerPath+".candidates", core.Diagnostics{{Summary: "required but missing", Hint: "the compositions to choose from besides that of pipeline, each with a name"}})
		}
		return
	}
	same := map[string]string{c.stagesText(): s.Own}
	first := map[string]string{s.Own: synthesizerPath + ".own"}
	if !plainFileName(s.Own) {
		l.problem(synthesizerPath+".own", "%q is not a plain name; use letters, digits, \"-\", \"_\" and \".\"", s.Own)
	}
	told := slices.Clone(l.found)
	for i := range s.Candidates {
		name, path := s.Candidates[i].Name, candidatePath(i)
		if !plainFileName(name) {
			l.problem(path+".name", "%q is not a plain name; use letters, digits, \"-\", \"_\" and \".\"", name)
		} else if earlier, twice := first[name]; twice {
			l.problem(path+".name", "there are two candidates %q; the other is %s", name, earlier)
		} else {
			first[name] = path
		}
		if config := l.alternative(c, i, told); config != nil {
			text := config.stagesText()
			if other, twice := same[text]; twice && len(told) == 0 {
				l.report(path, core.Diagnostics{{Summary: fmt.Sprintf("is the same composition as %q", other), Hint: "give it a pipeline with the stages that differ, or another round"}})
			}
			same[text] = name
			c.Alternatives = append(c.Alternatives, Alternative{Name: name, Config: config})
		}
	}
	if len(c.Alternatives) < len(s.Candidates) {
		return
	}
	own := *c
	own.Synthesizer, own.Alternatives = DefaultSynthesizer(), nil
	c.Alternatives = slices.Insert(c.Alternatives, 0, Alternative{Name: s.Own, Config: &own})
}

// alternative loads one candidate; nil where something is wrong with it.
func (l *loader) alternative(c *Config, i int, told core.Diagnostics) *Config {
	path := candidatePath(i)
	written, _ := l.find(path)
	sub := newLoader(l.catalog, l.options, l.name)
	sub.root = alternativeTree(l.root, written)
	if ds := strayStages(written); len(ds) > 0 {
		l.report(path, ds)
		return nil
	}
	config, err := sub.compose()
	if err != nil {
		before := len(l.found)
		for _, d := range sub.found {
			if slices.ContainsFunc(told, func(o core.Diagnostic) bool { return o.Path == d.Path && o.Summary == d.Summary }) || !ofStages(d.Path) {
				continue
			}
			d.Path = path + "." + d.Path
			l.found = append(l.found, d)
		}
		if len(l.found) == before && len(told) == 0 {
			l.found = append(l.found, sub.found...)
		}
		return nil
	}
	for _, d := range config.Notes {
		known := func(o core.Diagnostic) bool { return o.Path == d.Path && o.Summary == d.Summary }
		if ofStages(d.Path) && !slices.ContainsFunc(c.Notes, known) {
			d.Path = path + "." + d.Path
			c.Notes = append(c.Notes, d)
		}
	}
	return config
}

// ForAlternative returns the config while alternative i decides: that is its pipeline and round, and the others are those to choose from.
func (c *Config) ForAlternative(i int) *Config {
	chosen, a := *c, c.Alternatives[i].Config
	chosen.Admission, chosen.Allocation, chosen.Placement, chosen.Elasticity, chosen.Scaler, chosen.Round = a.Admission, a.Allocation, a.Placement, a.Elasticity, a.Scaler, a.Round
	chosen.Synthesizer.Own = c.Alternatives[i].Name
	chosen.Alternatives = slices.Insert(slices.Delete(slices.Clone(c.Alternatives), i, i+1), 0, c.Alternatives[i])
	return &chosen
}

// stagesText is the same for the same stages and rounds.
func (c *Config) stagesText() string {
	return flow(mapping(entry{"pipeline", c.pipelineNode()}, entry{"round", settings(&c.Round)}))
}

// ofStages reports whether a path is one that a candidate may give.
func ofStages(path string) bool {
	key := section(path)
	return key == "pipeline" || key == "round"
}

// alternativeTree is a config with the stages and rounds of a candidate, and without others to choose from. The nodes keep the places where they were written.
func alternativeTree(root, candidate *node) *node {
	tree := newMapping(root.at)
	for _, key := range root.keys {
		if key != synthesizerPath {
			tree.put(key, root.fields[key])
		}
	}
	for _, key := range [...]string{"pipeline", "round"} {
		if over := candidate.fields[key]; over != nil && over.kind == mappingKind {
			tree.put(key, over.over(tree.fields[key], key == "pipeline"))
		}
	}
	return tree
}

// over is a mapping with the keys of another that it lacks. Of a pipeline, the stages of elasticity are replaced one by one, too.
func (n *node) over(under *node, pipeline bool) *node {
	if under == nil || under.kind != mappingKind {
		return n
	}
	both := newMapping(n.at)
	for _, key := range under.keys {
		both.put(key, under.fields[key])
	}
	for _, key := range n.keys {
		value := n.fields[key]
		if earlier := under.fields[key]; pipeline && key == "elasticity" && value.kind == mappingKind {
			value = value.over(earlier, false)
		}
		both.put(key, value)
	}
	return both
}

// strayStages finds what the form of a candidate cannot have, beyond what loading it finds: it is checked as part of another config there.
func strayStages(candidate *node) (ds core.Diagnostics) {
	f := defaultFile()
	fields := core.FieldsOf(&f)
	for _, key := range [...]string{"pipeline", "round"} {
		at, given := candidate.fields[key]
		if !given || at.kind != mappingKind {
			continue
		}
		i := slices.IndexFunc(fields, func(field core.Field) bool { return field.Name == key })
		var names []string
		for k := range fields[i].Fields {
			names = append(names, fields[i].Fields[k].Name)
		}
		for _, name := range at.keys {
			if !slices.Contains(names, name) {
				ds = append(ds, core.Diagnostic{Path: key + "." + name, Summary: "unknown key", Hint: core.SuggestHint(name, "keys", names)})
			}
		}
	}
	return ds
}

// node is the section with the whole composition of each candidate.
func (s *Synthesizer) node(alternatives []Alternative) *yaml.Node {
	values := core.Encode(s)
	delete(values, "candidates")
	n := fieldsNode(core.FieldsOf(s), values)
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range alternatives {
		if i == 0 {
			continue // the pipeline of the config
		}
		a := &alternatives[i]
		list.Content = append(list.Content, mapping(
			entry{"name", scalar(a.Name)},
			entry{"pipeline", a.Config.pipelineNode()},
			entry{"round", settings(&a.Config.Round)},
		))
	}
	n.Content = append(n.Content, mapping(entry{"candidates", list}).Content...)
	return n
}

// inherited is the path in the config around it of a setting that a candidate leaves out; empty for none.
func inherited(path string) string {
	rest, of := strings.CutPrefix(path, synthesizerPath+".candidates[")
	if _, after, found := strings.Cut(rest, "]."); of && found && ofStages(after) {
		return after
	}
	return ""
}

// synthesizerSchema lets candidates have the stages of the pipeline.
func synthesizerSchema(properties map[string]any) {
	list := propertiesOf(properties, synthesizerPath)["candidates"].(map[string]any)
	of := list["items"].(map[string]any)["properties"].(map[string]any)
	ref := func(path string) map[string]any { return map[string]any{"$ref": "#/properties/" + path} }
	describe := func(key string, parts map[string]any) {
		of[key] = map[string]any{
			"type": "object", "additionalProperties": false, "properties": parts,
			"description": of[key].(map[string]any)["description"],
		}
	}
	elasticity := map[string]any{
		"type": "object", "additionalProperties": false, "properties": map[string]any{
			"job": ref("pipeline/properties/elasticity/properties/job"), "cluster": ref("pipeline/properties/elasticity/properties/cluster"),
		},
	}
	describe("pipeline", map[string]any{
		"admission": ref("pipeline/properties/admission"), "allocation": ref("pipeline/properties/allocation"),
		"placement": ref("pipeline/properties/placement"), "elasticity": elasticity,
	})
	round := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(propertiesOf(properties, "round"))) {
		round[key] = ref("round/properties/" + key)
	}
	describe("round", round)
}
