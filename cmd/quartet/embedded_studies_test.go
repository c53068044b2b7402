package main

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/study"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// runsOf is how many runs each study that comes with Quartet has.
var runsOf = map[string]int{
	"blox-eurosys24": 6, "estimates": 120, "five": 225, "gavel-osdi20": 24, "pollux-osdi21": 81, "sia-sosp23": 15, "tiresias-nsdi19": 3,
}

// Every study that comes with Quartet can be read, opens with a comment that says what it is, and is named as its file; where the
// published data is at hand, every config of every run is valid.
func TestEmbeddedStudiesAreValid(t *testing.T) {
	if len(configs.StudyNames()) != len(runsOf) {
		t.Errorf("studies %q, want %d", configs.StudyNames(), len(runsOf))
	}
	for _, name := range configs.StudyNames() {
		t.Run(name, func(t *testing.T) {
			text, err := configs.Study(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("no comment at the top")
			}
			s, err := study.Parse(name+".yaml", "unnamed", text)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("its name is %q", s.Name)
			}
			refdata.Path(t, "data")
			var env environment
			got, err := s.Count(t.Context(), study.Options{Catalog: catalog(), Build: "test", Config: configs.Options{Env: env.lookup}})
			if err != nil {
				t.Fatal(err)
			}
			if got != runsOf[name] {
				t.Errorf("%d runs, want %d", got, runsOf[name])
			}
		})
	}
}
