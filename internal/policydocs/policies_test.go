package policydocs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

var update = flag.Bool("update", false, "write docs/policies.md")

const root = "../.."

// stage is one table of the page.
type stage struct {
	name, title string
	infos       []core.Info
}

func stages() []stage {
	c := quartet.Builtins()
	return []stage{
		{"admission", "Admission: may a job compete", infos(c.Admission)},
		{"allocation", "Allocation: how many devices each job gets, and who is seated first", infos(c.Allocation)},
		{"placement", "Placement: which devices", infos(c.Placement)},
		{"elasticity", "Elasticity of jobs: what a job does with devices", infos(c.Elasticity)},
		{"cluster", "Elasticity of the cluster: how many nodes", infos(c.Scaler)},
	}
}

func infos[S any](factories []core.Factory[S]) []core.Info {
	var list []core.Info
	for _, f := range factories {
		list = append(list, f.Info)
	}
	return list
}

// page renders docs/policies.md.
func page() string {
	var b strings.Builder
	b.WriteString(`# Policies

Every built-in policy: the type that a config names, its idea, the publication it comes from, the file its code begins in, a shipped
config that runs or reproduces it, and how exactly. *Job for job* means that every job completes when it does in the reference.
Figures in brackets are the published ones. "Not compared" is meant literally: no test holds the policy against published figures.
` + "`quartet policy describe STAGE/TYPE`" + ` lists the settings of each.

This page is written from the catalogue by ` + "`go test ./internal/policydocs -update`" + `.
`)
	for _, s := range stages() {
		fmt.Fprintf(&b, "\n## %s\n\n| type | idea | publication | code | config | how exact |\n|---|---|---|---|---|---|\n", s.title)
		for _, info := range s.infos {
			f := all[s.name+"/"+info.Type]
			config, exact := "", f.Exact
			if f.Config != "" {
				config = fmt.Sprintf("[%s](../configs/%s)", strings.TrimSuffix(strings.TrimPrefix(f.Config, "papers/"), ".yaml"), f.Config)
			}
			if f.Results != "" {
				exact = fmt.Sprintf("[%s](%s)", f.Exact, f.Results)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | [%s](../%s) | %s | %s |\n", info.Type, cell(info.Summary), cell(info.Source), strings.TrimSuffix(f.File, ".go"), f.File, config, exact)
		}
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func TestPageIsCurrent(t *testing.T) {
	path := filepath.Join(root, "docs", "policies.md")
	want := page()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a page of the repository
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/policies.md is stale, write it with -update (-want +got):\n%s", diff)
	}
}

// Every policy of the catalogue has its facts, and what they name is there.
func TestEveryPolicyHasItsFacts(t *testing.T) {
	known := map[string]bool{}
	for _, s := range stages() {
		for _, info := range s.infos {
			id := s.name + "/" + info.Type
			known[id] = true
			f, listed := all[id]
			if !listed || f.Exact == "" {
				t.Errorf("%s: add its file, its config and how exact it is to internal/policydocs/facts.go", id)
				continue
			}
			if text := read(t, f.File); !strings.Contains(text, "package ") {
				t.Errorf("%s: %q holds no code", id, f.File)
			}
			if f.Config != "" {
				named := regexp.MustCompile(`\b` + info.Type + `\b`)
				if text := read(t, "configs/"+f.Config); !named.MatchString(text) {
					t.Errorf("%s: config %q does not name it", id, f.Config)
				}
			}
			if info.Source != "" && f.Exact == noPaper {
				t.Errorf("%s has a source, %q: it is not %q", id, info.Source, noPaper)
			}
			if results, _, _ := strings.Cut(f.Results, "#"); results != "" {
				read(t, "docs/"+results)
			}
		}
	}
	for id := range all {
		if !known[id] {
			t.Errorf("%s has facts and is in no list of components.go", id)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
