package configs

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

const minimal = `version: 1
cluster:
  nodes: [{name: a, accelerator: t4, devices: 4}]
workload: {type: generated}
pipeline:
  allocation: {type: tiresias}
`

// TestGolden runs each archive of testdata: its *.yaml files laid over each other, "sets" and "env" line by line. The
// file "want" is the resolved config, or every problem.
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in testdata: %v", err)
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			o, wantAt := unpack(t, archive)
			got := outcome(t, o)
			if *update {
				archive.Files[wantAt].Data = []byte(got)
				if err := os.WriteFile(filepath.Join(home, path), txtar.Format(archive), 0o644); err != nil { //nolint:gosec // a source file
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[wantAt].Data), got); diff != "" {
				t.Errorf("outcome (-want,+got):\n%s", diff)
			}
		})
	}
}

// unpack writes the files of an archive into the working directory, and finds the one with the expected outcome.
func unpack(t *testing.T, archive *txtar.Archive) (o Options, wantAt int) {
	t.Helper()
	wantAt = -1
	variables := map[string]string{}
	for i, f := range archive.Files {
		lines := strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		switch f.Name {
		case "want":
			wantAt = i
		case "sets":
			o.Sets = lines
		case "out":
			o.OutDir = lines[0]
		case "no plugins": // why they cannot be found
			o.Outside = func(Outside) (Catalog, error) {
				return Catalog{}, core.Diagnostics{{Position: core.Position{File: "plugins.lock.yaml"}, Summary: lines[0]}}
			}
		case "missing": // files that are named and do not exist
			o.Files = append(o.Files, lines...)
		case "env":
			for _, line := range lines {
				name, value, _ := strings.Cut(line, "=")
				variables[name] = value
				t.Setenv(name, value)
			}
		default:
			o.Files = append(o.Files, f.Name)
			if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if wantAt < 0 {
		t.Fatal("the archive has no file named want")
	}
	o.Env = environmentOf(variables)
	return o, wantAt
}

func outcome(t *testing.T, o Options) string {
	t.Helper()
	if o.Outside == nil {
		o.Outside = fakeOutside
	}
	c, err := Load(fakeCatalog(), o)
	if err != nil {
		return err.Error() + "\n"
	}
	resolved, err := c.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	return string(resolved)
}

func mustParse(t *testing.T, text string, o Options) *Config {
	t.Helper()
	c, err := Parse(fakeCatalog(), "test.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	c := mustParse(t, minimal, Options{})
	if diff := cmp.Diff(Round{Interval: time.Minute, Settle: Settle{Passes: 3, MakeRoom: true, ReserveAfter: time.Hour}}, c.Round); diff != "" {
		t.Errorf("round (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(Output{Dir: "runs", Write: []string{"jobs", "rounds", "decisions"}}, c.Output); diff != "" {
		t.Errorf("output (-want,+got):\n%s", diff)
	}
	got := []string{
		c.Name, fmt.Sprint(c.Seed), c.Workload.ID, c.Admission[0].ID, c.Allocation.ID, c.Placement.ID, c.Elasticity.ID,
		c.Scaler.ID, c.Backend.ID,
	}
	want := []string{
		"test", "1", "workload/generated", "admission/accept_all", "allocation/tiresias", "placement/consolidated",
		"elasticity/fixed", "scaler/none", "backend/simulator",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components (-want,+got):\n%s", diff)
	}
	if want := (core.Position{File: "test.yaml", Line: 6, Column: 16}); c.Allocation.At != want {
		t.Errorf("allocation was chosen at %v, want %v", c.Allocation.At, want)
	}
}

func TestSelectedNewHasItsOwnStream(t *testing.T) {
	draws := map[string]uint64{}
	f := core.NewFactory(core.Info{Type: "x"}, core.None{}, func(_ core.None, s core.Settings) (core.Admitter, error) {
		s.Log.Info("discarded")
		draws[s.ID] = s.Rand.Uint64()
		return nil, nil
	})
	for _, id := range []string{"admission/x", "admission/x#2"} {
		if _, err := (Selected[core.Admitter]{ID: id, Factory: f, Config: &core.None{}}).New(7, nil); err != nil {
			t.Fatal(err)
		}
		if want := core.NewRand(7, id).Uint64(); draws[id] != want {
			t.Errorf("%s drew %d, want %d", id, draws[id], want)
		}
	}
}

func TestBuildCluster(t *testing.T) {
	c := &Config{Cluster: Cluster{Nodes: []NodeGroup{
		{Name: "v", Count: 2, Accelerator: "v100", Devices: 8, CPUs: 32, MemoryGB: 256, Rack: "r1"},
		{Name: "single", Count: 1, Accelerator: "t4", Devices: 4},
		{Name: "w", Count: 1, Accelerator: "v100", Devices: 2},
	}}}
	want := &core.Cluster{
		Accelerators: []string{"v100", "t4"},
		Nodes: []core.Node{
			{ID: 0, Name: "v-0", Devices: 8, CPUs: 32, MemoryGB: 256, Rack: "r1"},
			{ID: 1, Name: "v-1", Devices: 8, CPUs: 32, MemoryGB: 256, Rack: "r1"},
			{ID: 2, Name: "single", Accelerator: 1, Devices: 4},
			{ID: 3, Name: "w", Devices: 2},
		},
	}
	if diff := cmp.Diff(want, c.BuildCluster()); diff != "" {
		t.Errorf("cluster (-want,+got):\n%s", diff)
	}
}

func TestOrigins(t *testing.T) {
	t.Setenv("QUARTET_SEED", "9")
	o := Options{
		Sets: []string{"pipeline.allocation.config.queue=blocking"}, OutDir: "elsewhere", Env: os.LookupEnv,
	}
	got := map[string]Origin{}
	for _, origin := range mustParse(t, minimal, o).Origins() {
		got[origin.Path] = origin
	}
	for _, want := range []Origin{
		{"version", "1", "test.yaml:1:1"},
		{"name", "test", "default"},
		{"seed", "9", "env QUARTET_SEED"},
		{"cluster.nodes[0].devices", "4", "test.yaml:3:38"},
		{"cluster.nodes[0].cpus", "0", "default"},
		{"pipeline.allocation.type", "tiresias", "test.yaml:6:16"},
		{"pipeline.allocation.config.queue", "blocking", "--set"},
		{"pipeline.allocation.config.thresholds[0]", "3250", "default"},
		{"pipeline.admission[0].type", "accept_all", "default"},
		{"output.dir", "elsewhere", "--out"},
	} {
		if diff := cmp.Diff(want, got[want.Path]); diff != "" {
			t.Errorf("origin of %s (-want,+got):\n%s", want.Path, diff)
		}
	}
}

func TestEveryLevelRefusesAnUnknownKey(t *testing.T) {
	resolved, err := mustParse(t, minimal, Options{
		Sets: []string{`pipeline.admission=[{type: quota, config: {tenants: [{name: a, devices: 2}]}}]`},
	}).Resolved()
	if err != nil {
		t.Fatal(err)
	}
	levels := []string{
		"", "cluster.", "cluster.nodes[0].", "workload.", "workload.config.", "round.", "pipeline.",
		"pipeline.admission[0].", "pipeline.admission[0].config.", "pipeline.admission[0].config.tenants[0].",
		"pipeline.allocation.", "pipeline.allocation.config.", "pipeline.allocation.config.decay.", "pipeline.placement.",
		"pipeline.placement.config.", "pipeline.elasticity.", "pipeline.elasticity.job.", "pipeline.elasticity.job.config.",
		"pipeline.elasticity.cluster.", "pipeline.elasticity.cluster.config.", "backend.", "backend.config.", "output.",
	}
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(levels).Draw(t, "level") + rapid.StringMatching(`x[a-z0-9_]{0,8}`).Draw(t, "key")
		value := rapid.SampledFrom([]string{"1", "text", "[]", "{}", "{a: 1}", "[1]", "{config: {}}"}).Draw(t, "value")
		_, err := Parse(fakeCatalog(), "test.yaml", resolved, Options{Sets: []string{path + "=" + value}})
		var ds core.Diagnostics
		if !errors.As(err, &ds) {
			t.Fatalf("--set %s=%s was accepted", path, value)
		}
		for _, d := range ds {
			if d.Position.File != "--set" {
				t.Errorf("--set %s=%s is blamed on %v", path, value, d)
			}
		}
	})
}

func TestResolvedReadsBackAsTheSame(t *testing.T) {
	sets := [][]string{
		{"name=other", "name=\"123\""},
		{"seed=18446744073709551615"},
		{"round.on_events=true", "round.interval=0s"},
		{"round.interval=90ms"},
		{"pipeline.admission=[]"},
		{"pipeline.admission[0].type=quota", "pipeline.admission[1].type=quota"},
		{`pipeline.admission=[{type: quota, config: {tenants: [{name: "no", devices: 1}, {name: "2001-01-01", devices: 3}]}}]`},
		{"pipeline.allocation.config.thresholds=[0.1, 1e300, 7]"},
		{"pipeline.allocation.config={decay: {factor: 0.5, every: 1m}}"},
		{"pipeline.allocation.type=las"},
		{"workload.config.path=${HOME}/a b.csv"},
		{"workload.config.path='#odd: [x]'"},
		{"output.write=[]"},
		{"cluster.nodes[1]={name: b, accelerator: '1e3', devices: 64, count: 3, cpus: 0.5}"},
	}
	env := environmentOf(map[string]string{"HOME": "/home/me"})
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Env: env}
		for _, group := range rapid.SliceOfN(rapid.SampledFrom(sets), 0, 6).Draw(t, "sets") {
			o.Sets = append(o.Sets, group...)
		}
		c, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), o)
		if err != nil {
			t.Skipf("the draw sets what another type has: %v", err)
		}
		want, err := c.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(fakeCatalog(), "manifest.json", want, Options{})
		if err != nil {
			t.Fatalf("resolved config refused: %v\n%s", err, want)
		}
		got, err := again.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("resolved again (-want,+got):\n%s", diff)
		}
		if diff := cmp.Diff(c.Allocation.Config, again.Allocation.Config); diff != "" {
			t.Errorf("allocation (-want,+got):\n%s", diff)
		}
		if diff := cmp.Diff(c.BuildCluster(), again.BuildCluster()); diff != "" {
			t.Errorf("cluster (-want,+got):\n%s", diff)
		}
	})
}

func TestOrderOfSetsOfTypeAndConfigDoesNotMatter(t *testing.T) {
	sets := []string{"pipeline.allocation.config.queue=blocking", "pipeline.allocation.type=tiresias"}
	text := strings.Replace(minimal, "type: tiresias", "type: las", 1)
	for range 2 {
		c := mustParse(t, text, Options{Sets: sets})
		if got := c.Allocation.Config.(*fakeTiresias).Queue; got != "blocking" {
			t.Errorf("--set %q leaves queue %q", sets, got)
		}
		sets[0], sets[1] = sets[1], sets[0]
	}
}

func TestEmbeddedByName(t *testing.T) {
	for _, want := range []string{"default.yaml", "compositions/greedy-goodput.yaml", "papers/philly/las.yaml"} {
		if !slices.Contains(EmbeddedNames(), want) {
			t.Errorf("%q is not among the embedded configs: %v", want, EmbeddedNames())
		}
	}
	t.Chdir(t.TempDir())
	nameOf := func() (name, from string) {
		t.Helper()
		c, err := Load(defaultCatalog(), Options{Files: []string{"default.yaml"}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Name, c.Workload.At.File
	}
	if name, from := nameOf(); name != "default" || from != "(built-in) default.yaml" {
		t.Errorf("config %q from %q, want the embedded default", name, from)
	}
	if err := os.WriteFile("default.yaml", []byte(minimal+"name: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, from := nameOf(); name != "mine" || from != "default.yaml" {
		t.Errorf("config %q from %q, want the file", name, from)
	}
}

func TestEmbedded(t *testing.T) {
	c, err := Load(defaultCatalog(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.BuildCluster().Devices(); got != 64 {
		t.Errorf("the default cluster has %d devices, want 64", got)
	}
	if got := c.Workload.Config.(*fakeTraining); got.Jobs != 160 || got.Span != 8*time.Hour || !got.Applications {
		t.Errorf("the default workload is %+v, want 160 jobs in 8h that train applications", got)
	}
}

// TestDocumentation holds docs/config.md to the form of the file: every key has its row there.
func TestDocumentation(t *testing.T) {
	data, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	f := defaultFile()
	var check func(path string, fields []core.Field)
	check = func(path string, fields []core.Field) {
		for _, f := range fields {
			p := core.JoinPath(path, f.Name)
			if len(f.Fields) > 0 && f.Type == "object" && f.Fields[0].Name != "type" {
				check(p, f.Fields)
				continue
			}
			if !strings.Contains(string(data), "| `"+p+"` |") {
				t.Errorf("docs/config.md does not describe %s", p)
			}
			if f.Type == "list of object" && f.Fields[0].Name != "type" {
				check(p+"[]", f.Fields)
			}
		}
	}
	check("", core.FieldsOf(&f))
	o := defaultPluginOptions()
	check("plugin", core.FieldsOf(&o))
}

func TestSchema(t *testing.T) {
	got, err := json.MarshalIndent(Schema(fakeCatalog()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/schema.json", got, 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("schema (-want,+got):\n%s", diff)
	}
}

func BenchmarkLoad(b *testing.B) {
	catalog := fakeCatalog()
	for b.Loop() {
		if _, err := Load(catalog, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(minimal, "seed=1")
	f.Add(string(defaultConfig), "pipeline.admission[0].type=quota")
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(archive.Files[0].Data), "output.dir=${A:-b}")
	}
	catalog := fakeCatalog()
	f.Fuzz(func(t *testing.T, text, set string) {
		c, err := Parse(catalog, "fuzz.yaml", []byte(text), Options{Sets: []string{set}})
		if err != nil {
			var ds core.Diagnostics
			if !errors.As(err, &ds) || len(ds) == 0 {
				t.Fatalf("error without diagnostics: %v", err)
			}
			for _, d := range ds {
				if d.Position.File == "" || d.Summary == "" {
					t.Errorf("diagnostic without position or text: %#v", d)
				}
			}
			return
		}
		resolved, err := c.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(catalog, "resolved.yaml", resolved, Options{}); err != nil {
			t.Errorf("resolved config refused: %v\n%s", err, resolved)
		}
		c.Origins()
	})
}
