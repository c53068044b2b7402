package sdk

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// TestLogsAreWrittenAsTheHostReadsThem logs at every level, and with an attribute named like a key of the format inside a group.
func TestLogsAreWrittenAsTheHostReadsThem(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: "debug", slog.LevelInfo - 1: "debug", slog.LevelInfo: "info", slog.LevelWarn - 1: "info", slog.LevelWarn: "warn",
		slog.LevelError - 1: "warn", slog.LevelError: "error", slog.LevelError + 4: "error",
	} {
		var text strings.Builder
		slog.New(newLogHandler(&text)).Log(t.Context(), level, "trained", "jobs", 3, slog.Group("last", "level", "high", "msg", "m"))
		var got map[string]any
		if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
			t.Fatalf("%q: %v", &text, err)
		}
		at, _ := got["@timestamp"].(string)
		if len(at) < len("2026-01-31T12:00:00.000000Z") || at[10] != 'T' || at[19] != '.' {
			t.Errorf("@timestamp is %q", at)
		}
		delete(got, "@timestamp")
		wanted := map[string]any{"@level": want, "@message": "trained", "jobs": 3.0, "last": map[string]any{"level": "high", "msg": "m"}}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("level %v (-want +got):\n%s", level, diff)
		}
	}
}

func TestStdoutIsGuarded(t *testing.T) {
	before := os.Stdout
	defer func() { os.Stdout = before }()
	if out := guardStdout(); out != before || os.Stdout != os.Stderr {
		t.Errorf("stdout %v, returned %v", os.Stdout, out)
	}
}

func TestAPluginStartedByHandSaysWhatItIs(t *testing.T) {
	s := serve(t,
		limited(core.Info{Type: "mine", Summary: "one line"}, func(limits, core.Settings) core.Allocator { return echo{} }),
		limited(core.Info{Type: "seats", Summary: "another"}, func(limits, core.Settings) core.Placer { return echo{} }),
	)
	var text strings.Builder
	help(&text, s)
	for _, want := range []string{"is a plugin of Quartet", "\n  allocation/mine: one line\n  placement/seats: another\n", "quartet plugin test ./", "quartet plugin install ./"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}
