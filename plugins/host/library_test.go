package host_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/internal/syncbuffer"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
)

// lent is the faulty plugin as it is installed, and a file with a line for each of its starts: the value of a variable.
func lent(t *testing.T, name string) (p host.Installed, starts string) {
	t.Helper()
	starts = filepath.Join(t.TempDir(), "starts")
	path := program(t, 0o700, `echo "start $LICENCE" >> '`+starts+`'`, "exec '"+os.Args[0]+"' "+serveFaulty)
	sum, err := host.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := host.Entry{Name: name, Version: "v1.0.0", Path: filepath.Base(path), Protocol: 1, SHA256: sum}
	for _, stage := range []string{"admission", "allocation", "placement"} {
		e.Components = append(e.Components, host.LockedComponent{Stage: stage, Type: "faulty", Summary: "of " + stage})
	}
	return host.Installed{Entry: e, Folder: filepath.Dir(path)}, starts
}

func started(t *testing.T, starts string) string {
	t.Helper()
	text, err := os.ReadFile(starts)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// library is one whose processes are known by their folder for temporary files, and must be gone when it is closed.
func library(t *testing.T) *host.Library {
	t.Helper()
	temporary := shortDir(t)
	t.Setenv("TMPDIR", temporary)
	l := host.NewLibrary(t.Context(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		for range 2 { // once more does nothing
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
	return l
}

func terms(on host.OnFailure) host.Terms {
	return host.Terms{Options: quickly(on), StartTimeout: 20 * time.Second, Environment: []string{"LICENCE"}}
}

// decided is what an allocator grants the one job of a view, in the round in which the faulty plugin goes wrong.
func decided(t *testing.T, policy core.Allocator) ([]core.Grant, error) {
	t.Helper()
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Round(faulty.Round).Jobs(coretest.MakeJob("only").Replicas(1).Waiting()).Obj()
	return policy.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
}

func settings(id string) core.Settings {
	return core.Settings{ID: id, Log: slog.New(slog.DiscardHandler)}
}

// A process that described itself also checks settings, and serves the component in the end.
func TestALibraryStartsNothingTwice(t *testing.T) {
	t.Setenv("LICENCE", "granted")
	l := library(t)
	p, starts := lent(t, "p")
	factories := host.Factories[core.Allocator](l, []host.Installed{p}, terms(host.Fail))
	if len(factories) != 1 || factories[0].Type != "faulty" || factories[0].Summary != "of allocation" {
		t.Fatalf("%d factories, %+v", len(factories), factories[0].Info)
	}
	f := factories[0]
	if got := started(t, starts); got != "" {
		t.Errorf("it was started before anything was asked of it: %q", got)
	}
	fields, schema := f.Fields(), f.Schema()
	if len(fields) != 2 || fields[0].Name != "fault" || len(schema) == 0 {
		t.Errorf("fields %v, schema %v", fields, schema)
	}
	if _, problems := f.Decode(map[string]any{"fautl": "exit"}); len(problems) != 1 || problems[0].Path != "fautl" || problems[0].Hint == "" {
		t.Errorf("problems %v", problems)
	}
	config, problems := f.Decode(map[string]any{"fault": ""})
	if diff := cmp.Diff(map[string]any{"fault": "", "marker": ""}, core.Encode(config)); len(problems) > 0 || diff != "" {
		t.Errorf("problems %v, settings -want +got:\n%s", problems, diff)
	}
	policy, err := f.New(config, settings("allocation/faulty"))
	if err != nil {
		t.Fatal(err)
	}
	if grants, err := decided(t, policy); err != nil || len(grants) != 1 {
		t.Errorf("%v, error %v", grants, err)
	}
	if got := started(t, starts); got != "start granted\n" {
		t.Errorf("starts: %q", got)
	}
	if _, err := f.New(config, settings("allocation/second")); err != nil {
		t.Fatal(err)
	}
	if got := started(t, starts); got != "start granted\nstart granted\n" {
		t.Errorf("starts with a second component: %q", got)
	}
}

// Processes of one plugin do not stand in for those of another, nor for those that see other variables.
func TestALibraryKeepsPluginsApart(t *testing.T) {
	t.Setenv("LICENCE", "granted")
	l := library(t)
	b, ofB := lent(t, "b")
	a, ofA := lent(t, "a")
	for _, factories := range [][]core.Factory[core.Allocator]{
		host.Factories[core.Allocator](l, []host.Installed{b, a}, terms(host.Fail)),
		host.Factories[core.Allocator](l, []host.Installed{a}, host.Terms{Options: quickly(host.Fail)}),
	} {
		for _, f := range factories {
			if fields := f.Fields(); len(fields) != 2 {
				t.Errorf("fields %v", fields)
			}
			config, _ := f.Decode(nil)
			if _, err := f.New(config, settings("allocation/faulty")); err != nil {
				t.Error(err)
			}
		}
	}
	if of := started(t, ofB); of != "start granted\n" {
		t.Errorf("starts of b: %q", of)
	}
	if of := started(t, ofA); of != "start granted\nstart \n" {
		t.Errorf("starts of a: %q", of)
	}
	for range 2 { // who asks changes nothing
		if diff := cmp.Diff([]host.Installed{a, b}, l.Used()); diff != "" {
			t.Errorf("used -want +got:\n%s", diff)
		}
	}
}

// A plugin that does not start, does not describe itself, or is given wrong settings says so, and is none of those that were used.
func TestALibraryTellsOfAPluginThatFails(t *testing.T) {
	l := library(t)
	good, _ := lent(t, "good")
	silent := good
	silent.Folder = filepath.Dir(program(t, 0o700, "echo no licence >&2; exit 4"))
	sum, err := host.HashFile(filepath.Join(silent.Folder, silent.Path))
	if err != nil {
		t.Fatal(err)
	}
	silent.SHA256 = sum
	f := host.Factories[core.Allocator](l, []host.Installed{silent}, terms(host.Fail))[0]
	if len(f.Fields()) > 0 || f.Schema() != nil {
		t.Errorf("fields %v, schema %v", f.Fields(), f.Schema())
	}
	if _, problems := f.Decode(nil); len(problems) != 1 || !strings.Contains(problems[0].Summary, "no licence") {
		t.Errorf("problems %v", problems)
	}
	slow := terms(host.Fail)
	slow.StartTimeout = time.Nanosecond
	if _, problems := host.Factories[core.Allocator](l, []host.Installed{good}, slow)[0].Decode(nil); len(problems) != 1 || !strings.Contains(problems[0].Summary, "not ready after 1ns") {
		t.Errorf("problems %v", problems)
	}
	if used := l.Used(); len(used) > 0 {
		t.Errorf("used %v", used)
	}
}

// A component that fails for good is not started, and one that cannot be created is not used.
func TestALibraryThatIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l := host.NewLibrary(ctx, slog.New(slog.DiscardHandler))
	p, _ := lent(t, "p")
	good := library(t)
	config, problems := host.Factories[core.Allocator](good, []host.Installed{p}, terms(host.Fail))[0].Decode(nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	policy, err := host.Factories[core.Allocator](l, []host.Installed{p}, terms(host.Fail))[0].New(config, settings("allocation/faulty"))
	if !errors.Is(err, context.Canceled) || len(l.Used()) > 0 || len(l.Troubles()) > 0 {
		t.Errorf("%v, error %v, used %v", policy, err, l.Used())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// What went wrong is told by component, and the fallback is made with the settings of the component.
func TestALibraryTellsOfTroubles(t *testing.T) {
	l := library(t)
	p, _ := lent(t, "p")
	log := &syncbuffer.Buffer{}
	on := terms(host.Fallback)
	on.Fallback = func(s core.Settings) (any, error) {
		if s.ID == "allocation/none" {
			return nil, errors.New("no fallback")
		}
		return &builtIn{}, nil
	}
	f := host.Factories[core.Allocator](l, []host.Installed{p}, on)[0]
	for id, fault := range map[string]string{"allocation/good": "", "allocation/bad": "error"} {
		config, problems := f.Decode(map[string]any{"fault": fault})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		policy, err := f.New(config, core.Settings{ID: id, Log: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		grants, err := decided(t, policy)
		if fellBack := len(grants) == 1 && grants[0].Job == 5; err != nil || fellBack != (fault != "") {
			t.Errorf("%s: %v, error %v", id, grants, err)
		}
	}
	troubles := l.Troubles()
	if len(troubles) != 1 || troubles[0].Component != "allocation/bad" || !troubles[0].Fallback || !strings.Contains(troubles[0].Reason, "the model is not loaded") {
		t.Errorf("troubles %+v", troubles)
	}
	if !strings.Contains(log.String(), "the fallback takes over") {
		t.Errorf("the log of the component: %q", log)
	}
	config, _ := f.Decode(nil)
	if _, err := f.New(config, settings("allocation/none")); err == nil || err.Error() != "no fallback" {
		t.Errorf("error %v", err)
	}
}

// A built-in in a process of its own is checked here and served there, by our own executable.
func TestABuiltInInAProcessOfItsOwn(t *testing.T) {
	l := library(t)
	var builtIns []core.Factory[core.Allocator]
	for _, f := range faulty.Factories() {
		if f, ok := f.(core.Factory[core.Allocator]); ok {
			builtIns = append(builtIns, f)
		}
	}
	log := &syncbuffer.Buffer{}
	on := terms(host.Fail)
	on.Log = slog.New(slog.NewTextHandler(log, nil))
	isolated := host.Isolated(l, builtIns, on)
	if len(isolated) != 1 || isolated[0].Type != "faulty" || len(isolated[0].Fields()) != 2 || len(isolated[0].Schema()) == 0 {
		t.Fatalf("%v", isolated)
	}
	f := isolated[0]
	if _, problems := f.Decode(map[string]any{"fautl": "exit"}); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
	config, problems := f.Decode(map[string]any{"fault": "print"})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if needs := f.Needs(config); len(needs) > 0 {
		t.Errorf("it needs %v", needs)
	}
	policy, err := f.New(config, settings("allocation/faulty"))
	if err != nil {
		t.Fatal(err)
	}
	if grants, err := decided(t, policy); err != nil || len(grants) != 1 {
		t.Errorf("%v, error %v", grants, err)
	}
	if err := l.Close(); err != nil { // the log is complete
		t.Error(err)
	}
	for _, want := range []string{`msg="serving allocation/faulty" plugin=allocation/faulty`, "a word on stderr"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, log)
		}
	}
	if used := l.Used(); len(used) > 0 {
		t.Errorf("used %v: it is no plugin", used)
	}
}
