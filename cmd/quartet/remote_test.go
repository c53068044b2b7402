package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/operate"
	"github.com/quartet-sched/quartet/cmd/internal/plugin"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/internal/pythontest"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/loopback"
	"github.com/quartet-sched/quartet/plugins/sdk"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// serveArgument makes the test binary serve a built-in as a plugin.
const serveArgument = "serve-as-plugin"

// testPoliciesID makes it serve the policies of tests instead.
const testPoliciesID = "test-policies"

// serveIfAsked is the other side of ownProcess.
func serveIfAsked() {
	if len(os.Args) != 3 || os.Args[1] != serveArgument {
		return
	}
	for _, f := range testPolicies() {
		if id, ok := f.(core.Factory[core.Allocator]); ok && os.Args[2] == "allocation/"+id.Type {
			sdk.Main(f)
		}
	}
	if os.Args[2] == testPoliciesID {
		sdk.Main(testPolicies()...)
	}
	f, err := plugin.BuiltInPolicy(catalog(), os.Args[2])
	if err != nil {
		os.Exit(cli.ExitUsage)
	}
	sdk.Main(f)
}

// way is how a stage is reached: through which connection.
type way func(f sdk.Factory, c host.Component) host.Dial

// ownProcess starts the test binary again.
func ownProcess(f sdk.Factory, c host.Component) host.Dial {
	return func(ctx context.Context) (*host.Session, error) { return ownBinary(c).Session(ctx, c) }
}

func ownBinary(c host.Component) host.Binary {
	return host.Binary{Name: c.ID, Path: os.Args[0], Args: []string{serveArgument, wire.StageName(c.Stage) + "/" + c.Type}}
}

// remote puts a component behind the wire.
func remote[S any](t testing.TB, by way, s configs.Selected[S], seed uint64, reach func(context.Context, host.Spec[S]) (S, error)) core.Component[S] {
	t.Helper()
	options := host.DefaultOptions
	options.Log = slog.New(slog.DiscardHandler)
	policy, err := reach(t.Context(), host.Spec[S]{
		ID: s.ID, Plugin: s.Factory.Type, Options: options,
		Dial: by(s.Factory, host.Component{Stage: wire.StageOf[S](), Type: s.Factory.Type, ID: s.ID, Seed: seed, Config: core.Encode(s.Config)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if closer, ok := any(policy).(io.Closer); ok {
		t.Cleanup(func() { _ = closer.Close() })
	}
	return core.Component[S]{ID: s.ID, Policy: policy}
}

// remoteStages puts every stage of a config behind the wire.
func remoteStages(t testing.TB, by way, c *configs.Config) core.Stages {
	t.Helper()
	stages := core.Stages{
		Allocation: remote(t, by, c.Allocation, c.Seed, host.Allocator),
		Placement:  remote(t, by, c.Placement, c.Seed, host.Placer),
		Elasticity: remote(t, by, c.Elasticity, c.Seed, host.Elasticity),
		Scaler:     remote(t, by, c.Scaler, c.Seed, host.Scaler),
	}
	for _, admission := range c.Admission {
		stages.Admission = append(stages.Admission, remote(t, by, admission, c.Seed, host.Admitter))
	}
	return stages
}

// openWorld opens the backend of a config over its cluster and jobs.
func openWorld(t testing.TB, c *configs.Config, jobs *workload.Workload) (*core.Cluster, core.Backend) {
	t.Helper()
	opener, err := c.Backend.New(c.Seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster := c.BuildCluster()
	world, err := opener.Open(t.Context(), cluster, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return cluster, world
}

// filesOf runs a config with given stages and returns jobs.csv, rounds.csv and decisions.jsonl.
func filesOf(t testing.TB, c *configs.Config, jobs *workload.Workload, stages core.Stages) [3]string {
	t.Helper()
	ctx := t.Context()
	cluster, world := openWorld(t, c, jobs)
	var files [3]bytes.Buffer
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: &files[0], Rounds: &files[1], Decisions: &files[2]})
	scaling, _ := world.(core.Scaling)
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: c.Round.Options(), Observers: []core.Observer{collector}, Scaling: scaling})
	if err := p.Run(ctx, world); err != nil {
		t.Fatal(err)
	}
	if _, err := collector.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
		t.Fatal(err)
	}
	return [3]string{files[0].String(), files[1].String(), files[2].String()}
}

// shippedConfigs lists the configs that are embedded, in order.
func shippedConfigs(t testing.TB) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(configs.Embedded(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && len(path) > 5 && path[len(path)-5:] == ".yaml" {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 10 {
		t.Fatalf("%d shipped configs, error %v", len(names), err)
	}
	return names
}

// wireAtLength is set by make wire.
var wireAtLength = flag.Bool("wire.all", false, "run the shipped configs through the wire with ten thousand jobs where they are quick enough, and the conformance suites in more worlds")

// jobsThroughTheWire is how many jobs of a config are run in three ways: fewer where rounds are many and long, and fewer still unless at length.
func jobsThroughTheWire(config string, atLength bool) int {
	few, many := 60, 10_000
	switch {
	case path.Base(config) == "pollux-genetic.yaml":
		few, many = 8, 20
	case slices.Contains([]string{"gavel-osdi20", "matching-tpds24", "sia-sosp23", "compositions"}, path.Base(path.Dir(config))):
		few, many = 25, 60
	}
	if atLength {
		return many
	}
	return few
}

func TestSameBytesThroughTheWire(t *testing.T) {
	for _, name := range shippedConfigs(t) {
		if name == operate.RunConfig || name == "elastic.yaml" || name == "pools.yaml" || name == "shares.yaml" {
			continue // they run commands, on a clock of their own
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "default.yaml" {
				refdata.Path(t, "data")
			}
			text, err := fs.ReadFile(configs.Embedded(), name)
			if err != nil {
				t.Fatal(err)
			}
			c, err := configs.Parse(catalog(), name, text, configs.Options{Env: os.LookupEnv})
			if err != nil {
				t.Fatal(err)
			}
			if agent, is := c.Elasticity.Config.(*elasticity.GoodputConfig); is && agent.HistoryPath != "" {
				agent.HistoryFrozen = true // one run is not to teach the next
			}
			jobs, err := quartet.LoadWorkload(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			jobs.Jobs = jobs.Jobs[:min(jobsThroughTheWire(name, *wireAtLength), len(jobs.Jobs))]
			direct, err := engine.BuildStages(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := filesOf(t, c, jobs, direct)
			for label, by := range map[string]way{"in memory": loopback.Dial, "own process": ownProcess} {
				got := filesOf(t, c, jobs, remoteStages(t, by, c))
				for i, file := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
					if got[i] != want[i] {
						t.Errorf("%s: %s differs from that of the built-ins", label, file)
					}
				}
			}
		})
	}
}

// A job that stands still is ended by an admission in another process as by the built-in, in Go and in Python.
func TestSameBytesWithReviews(t *testing.T) {
	refdata.Path(t, "data")
	const name = "papers/pollux-osdi21/tiresias.yaml"
	text, err := fs.ReadFile(configs.Embedded(), name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.Parse(catalog(), name, text, configs.Options{
		Env: os.LookupEnv, Sets: []string{"pipeline.admission=[{type: convergence}]"},
	})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := quartet.LoadWorkload(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	jobs.Jobs = jobs.Jobs[:60]
	direct, err := engine.BuildStages(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := filesOf(t, c, jobs, direct)
	if !strings.Contains(want[2], `"reason":"converged"`) {
		t.Fatal("no job was ended: nothing is compared")
	}
	same := func(t *testing.T, stages core.Stages) {
		got := filesOf(t, c, jobs, stages)
		for i, file := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
			if got[i] != want[i] {
				t.Errorf("%s differs from that of the built-ins", file)
			}
		}
	}
	t.Run("in memory", func(t *testing.T) { same(t, remoteStages(t, loopback.Dial, c)) })
	t.Run("own process", func(t *testing.T) { same(t, remoteStages(t, ownProcess, c)) })
	t.Run("Python", func(t *testing.T) {
		python := pythontest.Require(t)
		folder, err := filepath.Abs("../../plugins/python")
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("PYTHONPATH", folder)
		b := host.Binary{Name: "policies", Path: python, Args: []string{filepath.Join(folder, "tests", "policies.py")}, StartTimeout: 20 * time.Second}
		stages, err := engine.BuildStages(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		stages.Admission[0] = remote(t, func(_ sdk.Factory, c host.Component) host.Dial {
			return func(ctx context.Context) (*host.Session, error) { return b.Session(ctx, c) }
		}, c.Admission[0], c.Seed, host.Admitter)
		same(t, stages)
	})
}
