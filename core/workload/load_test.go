package workload

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// mustDecode decodes settings into a config.
func mustDecode(t testing.TB, f core.Factory[Source], settings map[string]any) any {
	t.Helper()
	config, problems := f.Decode(settings)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return config
}

// loadFrom loads a workload with the seed 1.
func loadFrom(t testing.TB, f core.Factory[Source], settings map[string]any) (*Workload, error) {
	t.Helper()
	source, err := f.New(mustDecode(t, f, settings), core.Settings{
		ID: "workload/" + f.Type, Rand: core.NewRand(1, "workload/"+f.Type), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return source.Load(context.Background())
}

func mustLoad(t testing.TB, f core.Factory[Source], settings map[string]any) *Workload {
	t.Helper()
	w, err := loadFrom(t, f, settings)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// readString reads a trace from memory, as the file t.csv.
func readString(read func(*input) (*Workload, error), content string) (*Workload, error) {
	in, err := newInput("t.csv", []byte(content))
	if err != nil {
		return nil, err
	}
	return read(in)
}

// sameJobs compares jobs by everything but the line that declares them.
var sameJobs = cmp.Options{
	cmpopts.IgnoreFields(Job{}, "At", "told"), cmp.AllowUnexported(durationModel{}), cmpopts.EquateEmpty(),
}

func diffJobs(want, got []Job) string { return cmp.Diff(want, got, sameJobs) }

// positioned fails unless err consists of diagnostics that each name a file and, where they can, a line.
func positioned(t testing.TB, err error) {
	t.Helper()
	var problems core.Diagnostics
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("%v (%T) is not a list of diagnostics", err, err)
	}
	for _, p := range problems {
		if p.Position.File == "" || p.Summary == "" {
			t.Errorf("%+v tells no file or no problem", p)
		}
	}
}

func writeFile(t testing.TB, content string, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFactories(t *testing.T) {
	path := map[string]any{"path": "trace.csv"}
	factories := map[string]struct {
		factory  core.Factory[Source]
		settings map[string]any
	}{
		"blox":           {NewBlox(), path},
		"csv":            {NewCSV(), path},
		"elasticflow":    {NewElasticFlow(), map[string]any{"path": "trace.csv", "profiles": "profiles"}},
		"elastic":        {NewElastic(), map[string]any{"path": "trace.csv", "profiles": "profiles"}},
		"generated":      {NewGenerated(), nil},
		"muri":           {NewMuri(), path},
		"openb":          {NewOpenB(), path},
		"philly":         {NewPhilly(), path},
		"pollux":         {NewPollux(), map[string]any{"path": "trace.csv", "profiles": "profiles"}},
		"shockwave":      {NewShockwave(), path},
		"tiresias":       {NewTiresias(), path},
		"unlike_workers": {NewMixedTypes(), nil},
	}
	for name, tc := range factories {
		t.Run(name, func(t *testing.T) {
			if tc.factory.Type != name {
				t.Errorf("type is %q", tc.factory.Type)
			}
			if err := coretest.CheckConfig(tc.factory, tc.settings); err != nil {
				t.Error(err)
			}
			for key := range tc.settings {
				empty := maps.Clone(tc.settings)
				empty[key] = ""
				if _, problems := tc.factory.Decode(empty); problems.Err() == nil {
					t.Errorf("an empty %s is accepted", key)
				}
			}
		})
	}
}
