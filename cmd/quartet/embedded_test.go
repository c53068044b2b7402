package main

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/configs"
)

// Every config that comes with Quartet is valid, opens with a comment that says what it is, and is named as its file.
func TestEmbeddedConfigsAreValid(t *testing.T) {
	for _, name := range configs.EmbeddedNames() {
		t.Run(name, func(t *testing.T) {
			text, err := fs.ReadFile(configs.Embedded(), name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("no comment at the top")
			}
			c, err := configs.Parse(catalog(), name, text, configs.Options{
				Env: func(key string) (string, bool) { return "somewhere", key == "QUARTET_DATA" },
			})
			if err != nil {
				t.Fatal(err)
			}
			want := strings.TrimSuffix(path.Base(name), ".yaml")
			if name == "elastic.yaml" {
				want = "local" // where submit and the others look for a scheduler when none is named
			}
			if !strings.HasSuffix(c.Name, want) {
				t.Errorf("its name is %q, want %q", c.Name, want)
			}
			for _, n := range c.Notes {
				if strings.Contains(n.Summary, "no jobs share a device") { // else sharing would not stand there
					t.Errorf("it is told: %s", n.Summary)
				}
			}
		})
	}
}
