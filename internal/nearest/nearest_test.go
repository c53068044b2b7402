package nearest_test

import (
	"testing"

	"github.com/quartet-sched/quartet/internal/nearest"
)

func TestName(t *testing.T) {
	valid := []string{"interval", "on_events", "jct_seconds.mean", "jct_seconds.restricted_mean"}
	for name, want := range map[string]string{
		"intervall": "interval", "on_event": "on_events", "jct.mean": "jct_seconds.mean", "": "", "quota": "", "an interval that is far too long to be compared with any other name there": "",
	} {
		if got := nearest.Name(name, valid); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
	if got := nearest.Name("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of equally near names %q, want the first", got)
	}
}
