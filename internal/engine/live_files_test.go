package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
)

// What a run has come to can be read while it goes on, and what it left then goes when it ends.
func TestARunThatGoesOnCanBeRead(t *testing.T) {
	l := newLiving(t)
	take := l.begin("fifo")
	holds := func(name, text string) {
		t.Helper()
		var all []string
		for range 500 {
			all = nil
			found, err := filepath.Glob(filepath.Join(l.dir, "."+name+"-*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range found {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(content))
			}
			if len(all) == 1 && strings.Contains(all[0], text) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("of %s there is %q, want one with %q", name, all, text)
	}
	holds(quartet.ManifestFile, `"interrupted": false`)
	holds(quartet.ManifestFile, `type: fifo`)
	holds("rounds.csv", "\n1,")
	holds("decisions.jsonl", `"action":"start"`)
	if err := take(t.Context(), l.config(l.spec("las"))); err != nil {
		t.Fatal(err)
	}
	<-l.rounds
	holds(quartet.ManifestFile, `type: las`)
	holds(quartet.ManifestFile, `"until_round": 1`)
	holds("rounds.csv", "\n2,")
	l.end()
	left, err := filepath.Glob(filepath.Join(l.dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left when it has ended: %q, %v", left, err)
	}
}
