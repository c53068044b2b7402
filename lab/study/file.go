package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// Study is a checked study file.
type Study struct {
	Name     string      // name of the study
	Base     []string    // config files that every run begins with, as with -f
	Set      []Setting   // of every run
	Axes     []Axis      // what is varied
	Seeds    Seeds       // replicates of each cell
	Compared int         // axis whose items are compared
	Baseline int         // item of that axis that the others are compared with; -1 for none
	Metrics  []string    // metrics that stats.csv has
	Write    []string    // files of every run that are kept besides jobs.csv, such as usage
	Points   []Published // published figures to compare with

	UnequalInputs bool // runs of other jobs than those of the baseline are compared all the same

	at core.Position // of the file
}

// Axis is one way in which the runs of a study differ.
type Axis struct {
	Name  string // name of the axis
	Items []Item // values of the axis
}

// Item is one place on an axis.
type Item struct {
	Name    string        // name of the item
	Files   []string      // config files laid over the base
	Set     []Setting     // settings laid over the base and the files
	Windows *Windows      // its replicates, instead of seeds
	With    []Only        // the cells that it is part of; empty for all
	At      core.Position // where the file says it
}

// Setting changes one value of the config of a run.
type Setting struct {
	Path  string        // path of the setting in the config
	Value any           // its value, as YAML decodes it
	At    core.Position // where the file or the command line says it
}

// Seeds are the replicates of a workload that is random.
type Seeds struct {
	Config bool   `config:"config" doc:"true for the seed of its config, instead of first and count: one replicate, or one a window"` // each run has the seed of its config
	First  uint64 `config:"first" doc:"seed of the first replicate"`                                                                  // seed of the first replicate
	Count  int    `config:"count" doc:"number of replicates, or how many are added at a time with until" min:"1" max:"100000"`        // replicates, or how many are added at a time with Until
	Until  *Until `config:"-"`                                                                                                        // when to stop adding seeds; nil for a fixed number
}

// Until says when there are enough seeds.
type Until struct {
	Metric    string `config:"metric" doc:"metric whose intervals must be narrow" required:"true"`                                               // metric whose intervals must be narrow
	HalfWidth string `config:"half_width" doc:"half the width of the interval of every change against the baseline, such as 2%" required:"true"` // half the width of the interval of every change against the baseline
	Most      int    `config:"most" doc:"seeds after which none is added" min:"1" max:"100000" required:"true"`                                  // number of seeds after which none is added

	share float64
}

// Windows are the parts of a trace that replicate a workload.
type Windows struct {
	Jobs     int           `config:"jobs" doc:"jobs in a window" min:"0"`                                                               // jobs in a window; 0 with Span
	Span     time.Duration `config:"span" doc:"length of a window, instead of jobs" min:"0s"`                                           // length of a window; 0 with Jobs
	Count    int           `config:"count" doc:"number of windows, spread evenly over the trace" min:"1" max:"100000" required:"true"`  // number of windows, spread evenly over the trace
	FirstJob int           `config:"first_job" doc:"rank of the first job that belongs to a window" min:"0"`                            // rank of the first job that belongs to a window
	Stride   int           `config:"stride" doc:"jobs from the begin of a window to that of the next; 0 to spread them evenly" min:"0"` // jobs from the start of a window to that of the next; 0 to spread them evenly
}

// The names of axes with a meaning of their own.
const (
	axisScheduler = "scheduler"
	axisWorkload  = "workload"
	axisLoad      = "load"
)

// Pooled stands in stats.csv for all items of an axis.
const Pooled = "all"

// form is a study file as core.Decode reads it.
type form struct {
	Version  int              `config:"version" doc:"version of the study format, 1" required:"true"`
	Name     string           `config:"name" doc:"name of the study, a plain file name; the base name of the file if left out"`
	Base     []string         `config:"base" doc:"config files that every run begins with"`
	Set      map[string]any   `config:"set" doc:"values of the config of every run, by path"`
	Axes     map[string]any   `config:"axes" doc:"lists of items, by the name of the axis"`
	Seeds    map[string]any   `config:"seeds" doc:"replicates of a random workload"`
	Baseline map[string]any   `config:"baseline" doc:"axis: item that the others of the axis are compared with"`
	Metrics  []string         `config:"metrics" doc:"numbers of summary.json that are compared"`
	Write    []string         `config:"write" doc:"files of every run that are kept besides jobs.csv" enum:"accelerators|fairness|tenants|timeline|usage|training|efficiency"`
	Points   []map[string]any `config:"published" doc:"published figures that the page shows beside ours"`
	Unequal  bool             `config:"unequal_inputs" doc:"true to compare also runs of other jobs than those of the baseline"`
}

type itemForm struct {
	Name    string         `config:"name" doc:"name of the item" required:"true"`
	Files   []string       `config:"files" doc:"config files laid over the base"`
	Set     map[string]any `config:"set" doc:"values of the config, by path"`
	Windows map[string]any `config:"windows" doc:"windows of the trace that replicate it"`
	With    map[string]any `config:"with" doc:"items of other axes that it is combined with, by axis; all if left out"`
}

type loadForm struct {
	Values []float64 `config:"values" doc:"factors of the offered load" required:"true"`
	By     string    `config:"by" doc:"how the load is scaled" enum:"thinning|compression|nodes"`
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	axisName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// reader collects what is wrong with a study file.
type reader struct {
	document *yamlpos.Document
	found    core.Diagnostics
	seeded   bool // configs have their seeds, which settings may change
}

// Parse reads a study file; file stands for it in positions, and name for its name where it gives none. An error is a
// core.Diagnostics with every problem of its form; what its settings make of a config is checked when it is expanded.
func Parse(file, name string, text []byte) (*Study, error) {
	document, values, err := yamlpos.Parse(file, text)
	if err != nil {
		return nil, err
	}
	r := &reader{document: document}
	if r.refuseAliases(document.Root); len(r.found) > 0 {
		return nil, r.found.Err()
	}
	f := form{Name: name}
	r.found = document.Locate(core.Decode(&f, values))
	if len(r.found) > 0 {
		return nil, r.found.Err()
	}
	s := &Study{Name: f.Name, Base: f.Base, UnequalInputs: f.Unequal, at: core.Position{File: file}}
	if config, given := f.Seeds["config"]; given { // what is no truth value is told once
		r.seeded = config != false
	}
	if f.Version != 1 {
		r.add("version", fmt.Sprintf("version %d is not supported", f.Version), "this program reads version 1")
	}
	if !plainName.MatchString(s.Name) {
		r.add("name", fmt.Sprintf("%q is not a plain file name", s.Name), `use letters, digits, "-", "_" and "."`)
	}
	s.Set = r.settings(r.node("set"), "set", f.Set)
	r.axes(s, f.Axes)
	r.restrict(s, f.Axes)
	r.seeds(s, f.Seeds)
	r.baseline(s, f.Baseline)
	r.metrics(s, f.Metrics)
	r.write(s, f.Write)
	r.published(s, f.Points)
	if err := r.found.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// refuseAliases refuses what stands for a value that is written elsewhere, as configs do.
func (r *reader) refuseAliases(n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Kind == yaml.AliasNode || n.Tag == "!!merge" {
		r.found = append(r.found, core.Diagnostic{
			Position: core.Position{File: r.document.File, Line: n.Line, Column: n.Column}, Summary: "aliases are not supported", Hint: "repeat the value",
		})
		return
	}
	for i, child := range n.Content {
		if i%2 == 0 || n.Kind != yaml.MappingNode || n.Content[i-1].Tag != "!!merge" { // one that is merged is told at its key
			r.refuseAliases(child)
		}
	}
}

func (r *reader) add(path, summary, hint string) {
	r.found = append(r.found, core.Diagnostic{Position: r.document.At(path), Path: path, Summary: summary, Hint: hint})
}

// decode reads a part of the file into a struct of config tags.
func (r *reader) decode(into any, raw map[string]any, path string) bool {
	ds := core.Decode(into, raw)
	for _, d := range ds {
		d.Path = core.JoinPath(path, d.Path)
		d.Position = r.document.At(d.Path)
		r.found = append(r.found, d)
	}
	return len(ds) == 0
}

// node is the value of a key of the file; nil when there is none.
func (r *reader) node(key string) *yaml.Node { return valueOf(r.document.Root, key) }

func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// settings lists what a mapping of paths sets, in the order of the file.
func (r *reader) settings(n *yaml.Node, path string, values map[string]any) []Setting {
	var list []Setting
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := core.Position{File: r.document.File, Line: key.Line, Column: key.Column}
		if root, _, _ := strings.Cut(key.Value, "."); root == "seed" && !r.seeded || root == "name" || root == "output" {
			r.found = append(r.found, core.Diagnostic{
				Position: at, Path: path, Summary: fmt.Sprintf("%q is for the study to set", key.Value), Hint: "use seeds for seeds",
			})
			continue
		}
		list = append(list, Setting{Path: key.Value, Value: values[key.Value], At: at})
	}
	return list
}

// axes reads the axes in the order of the file.
func (r *reader) axes(s *Study, values map[string]any) {
	n := r.node("axes")
	if n == nil || len(n.Content) == 0 {
		r.add("axes", "there is none", "add axes: {scheduler: [fifo, srtf]}")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		path := "axes." + name
		switch {
		case !axisName.MatchString(name):
			r.add(path, fmt.Sprintf("%q is no name of an axis", name), `use small letters, digits and "_"`)
			continue
		case slices.Contains(reserved, name) || slices.Contains(Columns(), name):
			r.add(path, fmt.Sprintf("%q is a column of the tables", name), "choose another name")
			continue
		}
		axis := Axis{Name: name, Items: r.items(n.Content[i+1], path, name, values[name])}
		for k := range axis.Items {
			r.checkItem(path, &axis, k)
		}
		if len(axis.Items) == 0 && len(r.found) == 0 {
			r.add(path, "has no items", "")
		}
		s.Axes = append(s.Axes, axis)
	}
}

// reserved are the columns of the tables beside the axes and the numbers of a summary.
var reserved = []string{
	"run", "replicate", "seed", "offered_load", "outcome", "metric", "baseline", "n", "mean", "baseline_mean", "change", "t_low", "t_high",
	"bca_low", "bca_high", "ratio_of_means", "wins", "ties", "wilcoxon_p", "holm_p", "looks", "method", "not_completed", "baseline_not_completed", "interval_p", "level", "kind", "message",
	"figure", "runs", "published", "ours", "difference",
}

func (r *reader) checkItem(path string, axis *Axis, k int) {
	item := &axis.Items[k]
	at := fmt.Sprintf("%s[%d]", path, k)
	switch {
	case strings.TrimSpace(item.Name) == "":
		r.add(at, "the name of an item is empty", "")
	case item.Name == Pooled:
		r.add(at, `"all" stands for all items of an axis`, "choose another name")
	case strings.ContainsFunc(item.Name, unicode.IsControl):
		r.add(at, fmt.Sprintf("the name %q has control characters", item.Name), "")
	case slices.ContainsFunc(axis.Items[:k], func(other Item) bool { return other.Name == item.Name }):
		r.add(at, fmt.Sprintf("the name %q is given twice on this axis", item.Name), "")
	}
}

// items reads the items of an axis: mappings with a name; short names on the axes scheduler and workload; numbers on load.
func (r *reader) items(n *yaml.Node, path, axis string, value any) (items []Item) {
	by := ""
	if fields, ok := value.(map[string]any); ok && axis == axisLoad {
		var f loadForm
		f.By = "thinning"
		if !r.decode(&f, fields, path) {
			return nil
		}
		by, value, n = f.By, fields["values"], valueOf(n, "values")
	}
	list, ok := value.([]any)
	if !ok {
		r.add(path, "expected a list of items", "")
		return nil
	}
	for i, value := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		position := core.Position{File: r.document.File, Line: n.Content[i].Line, Column: n.Content[i].Column}
		fields, mapping := value.(map[string]any)
		if mapping {
			if item, ok := r.item(n.Content[i], at, axis, fields); ok {
				item.At = position
				items = append(items, item)
			}
			continue
		}
		item, err := Short(axis, value, by)
		if err != nil {
			r.add(at, err.Error(), "")
			continue
		}
		item.At = position
		for k := range item.Set {
			item.Set[k].At = position
		}
		items = append(items, item)
	}
	return items
}

func (r *reader) item(n *yaml.Node, path, axis string, fields map[string]any) (Item, bool) {
	var f itemForm
	if !r.decode(&f, fields, path) {
		return Item{}, false
	}
	item := Item{Name: f.Name, Files: f.Files, Set: r.settings(valueOf(n, "set"), path+".set", f.Set)}
	if f.Windows == nil {
		return item, true
	}
	path += ".windows"
	var w Windows
	if !r.decode(&w, f.Windows, path) {
		return Item{}, false
	}
	switch {
	case axis != axisWorkload:
		r.add(path, "only items of the axis workload have windows", "")
	case w.Span > 0 && w.Span < time.Second:
		r.add(path+".span", fmt.Sprintf("%v is too short", w.Span), "windows have whole seconds")
	case (w.Jobs > 0) == (w.Span > 0):
		r.add(path, "needs jobs or span, and not both", "")
	case w.Span > 0 && (w.FirstJob > 0 || w.Stride > 0):
		r.add(path, "first_job and stride go with jobs only", "")
	case w.Stride > 0 && w.Stride < w.Jobs:
		r.add(path, fmt.Sprintf("windows of %d jobs overlap at a stride of %d", w.Jobs, w.Stride), "")
	}
	item.Windows = &w
	return item, true
}

// Short is the item that a plain value stands for. On the axis scheduler it is a type of allocation, or a config file, by its
// ending; on the axis workload it is "default" for that of the base, a trace in CSV, a config file, or a type of workload; on
// the axis load it is a factor, scaled as by says, or by thinning.
func Short(axis string, value any, by string) (Item, error) {
	name, text := value.(string)
	set := func(path string, value any) []Setting { return []Setting{{Path: path, Value: value}} }
	yamlFile := strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
	switch {
	case axis == axisLoad:
		factor, err := number(value)
		if err != nil || !(factor > 0) || math.IsInf(factor, 0) {
			return Item{}, fmt.Errorf("%v is no load: a load is a number above 0", value)
		}
		item := Item{Name: strconv.FormatFloat(factor, 'f', -1, 64), Set: set("sample.load.factor", factor)}
		if by != "" {
			item.Set = append(item.Set, Setting{Path: "sample.load.by", Value: by})
		}
		return item, nil
	case (axis == axisScheduler || axis == axisWorkload) && text && yamlFile:
		return Item{Name: name, Files: []string{name}}, nil
	case axis == axisScheduler && text:
		return Item{Name: name, Set: set("pipeline.allocation.type", name)}, nil
	case axis == axisWorkload && name == "default":
		return Item{Name: name}, nil
	case axis == axisWorkload && (strings.HasSuffix(name, ".csv") || strings.HasSuffix(name, ".csv.gz")):
		return Item{Name: name, Set: set("workload", map[string]any{"type": "csv", "config": map[string]any{"path": name}})}, nil
	case axis == axisWorkload && text:
		return Item{Name: name, Set: set("workload.type", name)}, nil
	}
	return Item{}, fmt.Errorf("%v is no item of this axis: write {name: …, set: {path: value}}", value)
}

func number(value any) (float64, error) {
	switch value := value.(type) {
	case int:
		return float64(value), nil
	case float64:
		return value, nil
	case string:
		return strconv.ParseFloat(value, 64)
	}
	return 0, errors.New("not a number")
}

func (r *reader) seeds(s *Study, values map[string]any) {
	s.Seeds = Seeds{First: 1, Count: 1}
	until, given := values["until"]
	rest := map[string]any{}
	for key, value := range values {
		if key != "until" {
			rest[key] = value
		}
	}
	if !r.decode(&s.Seeds, rest, "seeds") {
		return
	}
	if s.Seeds.First > mostFirst {
		r.add("seeds.first", fmt.Sprintf("%d leaves no room for the seeds after it", s.Seeds.First), fmt.Sprintf("the largest is %d", uint64(mostFirst)))
	}
	for _, key := range []string{"first", "count", "until"} {
		if _, named := values[key]; named && s.Seeds.Config {
			r.add("seeds."+key, "every run has the seed of its config", "leave out config, or "+key)
		}
	}
	if !given || s.Seeds.Config {
		return
	}
	fields, ok := until.(map[string]any)
	if !ok {
		r.add("seeds.until", "expected {metric: …, half_width: 2%, most: 40}", "")
		return
	}
	if width, given := fields["half_width"]; given {
		fields = maps.Clone(fields)
		fields["half_width"] = fmt.Sprint(width) // a number is a share
	}
	u := &Until{}
	if !r.decode(u, fields, "seeds.until") {
		return
	}
	percent, isPercent := strings.CutSuffix(u.HalfWidth, "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if isPercent {
		share /= 100
	}
	switch {
	case err != nil || !(share > 0) || share >= 1:
		r.add("seeds.until.half_width", fmt.Sprintf("%q is no width", u.HalfWidth), "write 2% or 0.02")
	case u.Most < s.Seeds.Count:
		r.add("seeds.until.most", fmt.Sprintf("%d is less than count, %d", u.Most, s.Seeds.Count), "")
	case (u.Most+s.Seeds.Count-1)/s.Seeds.Count > mostLooks:
		r.add("seeds.until.most", fmt.Sprintf("takes more than %d looks", mostLooks), fmt.Sprintf("count seeds are added at a time: raise count to %d", (u.Most+mostLooks-1)/mostLooks))
	}
	r.checkMetric("seeds.until.metric", u.Metric, PairMetrics...)
	u.share = share
	s.Seeds.Until = u
}

// mostFirst is the largest first seed: more follow than a study can have.
const mostFirst = math.MaxUint64 - 1<<32

// mostLooks bounds how often the intervals of a study are looked at.
const mostLooks = 20

func (r *reader) baseline(s *Study, values map[string]any) {
	s.Baseline = -1
	if i := s.axis(axisScheduler); i >= 0 {
		s.Compared = i
	}
	if len(values) > 1 {
		r.add("baseline", "names more than one axis", "one axis is compared, within the items of the others")
		return
	}
	for name, value := range values {
		i := s.axis(name)
		if i < 0 {
			r.add("baseline."+name, fmt.Sprintf("there is no axis %q", name), core.SuggestHint(name, "axes", s.axisNames()))
			return
		}
		s.Compared = i
		wanted := fmt.Sprint(value)
		names := s.Axes[i].names()
		if s.Baseline = slices.Index(names, wanted); s.Baseline < 0 {
			r.add("baseline."+name, fmt.Sprintf("the axis has no item %q", wanted), core.SuggestHint(wanted, "items", names))
		}
	}
	if s.Baseline == 0 && len(s.Axes[s.Compared].Items) == 1 {
		s.Baseline = -1 // it is compared with nothing
	}
	if u := s.Seeds.Until; u != nil && s.Baseline >= 0 && len(r.found) == 0 && s.onlyWindows() {
		r.add("seeds.until", "adds no seeds: the replicates of every workload are windows", "leave it out, and raise count of windows")
	} else if u != nil && s.Baseline < 0 {
		r.add("seeds.until", "needs a baseline, and an item beside it: it is the changes against it whose intervals must be narrow", "add baseline: {scheduler: …}")
	}
}

func (s *Study) axis(name string) int {
	return slices.IndexFunc(s.Axes, func(a Axis) bool { return a.Name == name })
}

func (s *Study) axisNames() []string {
	names := make([]string, len(s.Axes))
	for i := range s.Axes {
		names[i] = s.Axes[i].Name
	}
	return names
}

// defaultMetrics are compared where a study names none.
var defaultMetrics = []string{
	"jct_seconds.mean", "jct_seconds.p50", "jct_seconds.p99", "makespan_seconds", "utilization_ratio", "restarts.mean", "fairness.rho_mean",
}

func (r *reader) metrics(s *Study, names []string) {
	s.Metrics = names
	if len(names) == 0 {
		s.Metrics = defaultMetrics
	}
	for i, name := range names {
		path := fmt.Sprintf("metrics[%d]", i)
		r.checkMetric(path, name, PairMetrics...)
		if ofPair(name) && s.Baseline < 0 {
			r.add(path, fmt.Sprintf("%q is of two runs together", name), "add baseline: {scheduler: …}, and an item beside it")
		}
		if slices.Contains(names[:i], name) {
			r.add(path, fmt.Sprintf("%q is named twice", name), "")
		}
	}
}

func (r *reader) checkMetric(path, name string, more ...string) {
	known := append(Metrics(), more...)
	if !slices.Contains(known, name) {
		r.add(path, fmt.Sprintf("unknown metric %q", name), core.SuggestHint(name, "metrics", known))
	}
}

// Flags turns settings into those of a config, types first: a change of type drops the config of the type before.
func Flags(settings []Setting) []configs.Flag {
	sorted := slices.Clone(settings)
	slices.SortStableFunc(sorted, func(a, b Setting) int {
		return rank(a) - rank(b)
	})
	list := make([]configs.Flag, len(sorted))
	for i, s := range sorted {
		value, err := json.Marshal(s.Value) // JSON is YAML of one line
		if err != nil {
			value = []byte(fmt.Sprint(s.Value)) // what YAML can hold and JSON cannot, such as .nan
		}
		place := s.At.String()
		if place == "" {
			place = "study"
		}
		list[i] = configs.Flag{Name: place, Set: s.Path + "=" + string(value)}
	}
	return list
}

// rank orders settings: whole sections, then types, then what is inside of them.
func rank(s Setting) int {
	switch {
	case !strings.Contains(s.Path, "."):
		return 0
	case strings.HasSuffix(s.Path, ".type"):
		return 1
	default:
		return 2
	}
}
