package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/doctest"
)

// Every YAML block is YAML, and one that is a config, or a part of one, is valid over the default.
func TestEveryConfigOfEveryPageIsValid(t *testing.T) {
	keys := []string{"cluster", "name", "output", "pipeline", "plugins", "round", "seed", "version", "workload", "backend"}
	checked := 0
	pages, err := doctest.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range doctest.Blocks(string(text)) {
			language, how, _ := strings.Cut(b.Info, " ")
			if language != "yaml" {
				continue
			}
			var document map[string]any
			if err := yaml.Unmarshal([]byte(b.Text), &document); err != nil {
				t.Errorf("%s:%d: %v", path, b.Line, err)
				continue
			}
			if _, jobs := document["jobs"]; jobs {
				file := filepath.Join(t.TempDir(), "jobs.yaml")
				if err := os.WriteFile(file, []byte(b.Text), 0o600); err != nil {
					t.Fatal(err)
				}
				if code, _, stderr := invoke(t, "trace", "info", "--type", "jobs", "--set", "path="+file); code != cli.ExitOK {
					t.Errorf("%s:%d: %s", path, b.Line, stderr)
				}
				checked++
				continue
			}
			other := slices.ContainsFunc(slices.Collect(maps.Keys(document)), func(key string) bool { return !slices.Contains(keys, key) })
			if other || strings.HasPrefix(how, "no-run:") {
				continue
			}
			file := filepath.Join(t.TempDir(), "part.yaml")
			if err := os.WriteFile(file, []byte(b.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := configs.Load((&cli.App{Engine: engine().Engine}).Catalog(), configs.Options{Files: []string{"default.yaml", file}}); err != nil {
				t.Errorf("%s:%d: %v", path, b.Line, err)
			}
			checked++
		}
	}
	if checked < 3 {
		t.Errorf("%d configs found, want more: are the blocks still marked as yaml?", checked)
	}
	t.Logf("%d configs and job files are valid", checked)
}
