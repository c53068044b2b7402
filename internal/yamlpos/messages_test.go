package yamlpos_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/plugins/host"
)

var update = flag.Bool("update", false, "write the golden files anew")

// texts are broken in every way that YAML, its positions or the form of a file can be.
var texts = map[string]string{
	"empty":            "",
	"comment":          "# nothing\n",
	"null":             "null\n",
	"scalar":           "text\n",
	"list":             "- a\n- b\n",
	"tab":              "version: 1\n\tname: x\n",
	"open flow":        "version: 1\nname: [a\n",
	"bad indent":       "version: 1\n name: x\nseed: 2\n",
	"control":          "version: 1\nname: \"a\x01b\"\n",
	"bad escape":       "version: 1\nname: \"\\q\"\n",
	"twice":            "version: 1\nname: a\nname: b\n",
	"twice below":      "version: 1\ncluster:\n  nodes: []\n  nodes: []\nversion: 1\n",
	"unknown":          "version: 1\nnamee: a\nplugin: []\njob: []\n",
	"upper case":       "Version: 1\nNAME: a\n",
	"type":             "version: one\nname: [a]\nseed: -1\nplugins: 7\njobs: 7\n",
	"alias":            "version: 1\nname: &a x\nworkload: *a\n",
	"unknown alias":    "version: 1\nname: *nobody\n",
	"anchor in list":   "version: 1\njobs:\n  - &a {name: x}\n  - *a\nplugins:\n  - &b {name: x}\n  - *b\n",
	"merge key":        "version: 1\nbase: &b {name: x}\nplugins:\n  - {<<: *b}\njobs:\n  - {<<: *b}\n",
	"tag":              "version: !!binary aGk=\nname: !mine x\n",
	"timestamp":        "version: 1\nname: 2020-01-01\n",
	"odd key":          "version: 1\n1: a\n[a]: b\n? {c: d}\n: e\n",
	"second document":  "version: 1\n---\nversion: 1\n",
	"broken second":    "version: 1\n---\n{\n",
	"second null":      "version: 1\n---\n",
	"deep":             "version: 1\njobs:\n  - name: a\n    replicas: many\n    batch: {initial: x}\n  - nam: b\nplugins:\n  - {name: a, version: 1, components: [{stage: x}, {type: 1}]}\n  - nam: b\n",
	"top level tag":    "!!str version\n",
	"large int":        "version: 99999999999999999999999\nseed: 0x10\n",
	"not a number":     "version: .nan\nseed: .inf\n",
	"int of text":      "version: !!int x\n",
	"carriage returns": "version: 1\r\nnamee: a\r\n",
	"byte order mark":  "\ufeffversion: 1\nnamee: a\n",
	"unclosed quote":   "version: 1\nname: \"a\n",
	"directive":        "%YAML 3.0\n---\nversion: 1\n",
	"colon":            "version: 1: 2\n",
}

// readers are the files of Quartet in YAML.
var readers = map[string]func(t *testing.T, text string) error{
	"config": func(_ *testing.T, text string) error {
		_, err := configs.Parse(configs.Catalog{}, "x.yaml", []byte(text), configs.Options{})
		return err
	},
	"profile": func(_ *testing.T, text string) error {
		_, err := goodput.ReadProfile("x.yaml", []byte(text))
		return err
	},
	"jobs": func(_ *testing.T, text string) error {
		_, err := workload.DecodeJobs("x.yaml", []byte(text))
		return err
	},
	"lock": func(t *testing.T, text string) error {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, host.LockFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := host.ReadLock(folder)
		if ds, ok := errors.AsType[core.Diagnostics](err); ok {
			for i := range ds {
				ds[i].Position.File = filepath.Base(ds[i].Position.File)
			}
		}
		return err
	},
}

// Every file tells what is wrong with it as the golden file has it, to the byte.
func TestMessages(t *testing.T) {
	var got strings.Builder
	for _, name := range sortedKeys(texts) {
		for _, reader := range sortedKeys(readers) {
			fmt.Fprintf(&got, "== %s as %s\n%v\n", name, reader, readers[reader](t, texts[name]))
		}
	}
	golden := filepath.Join("testdata", "messages.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
