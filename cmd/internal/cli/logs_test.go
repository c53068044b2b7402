package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// parsed is an invocation with flags of its own.
func parsed(t *testing.T, stderr *bytes.Buffer, args ...string) (*App, error) {
	t.Helper()
	a := &App{Stderr: stderr}
	c := &cobra.Command{}
	a.Logs.Register(c)
	return a, c.ParseFlags(args)
}

func TestLogFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args      []string
		want      string // without the time
		wantError string
	}{
		"text without a time":    {nil, "level=WARN msg=beware job=a\n", ""},
		"from info on":           {[]string{"--log-level=info"}, "level=INFO msg=listen job=a\nlevel=WARN msg=beware job=a\n", ""},
		"errors only":            {[]string{"--log-level", "error"}, "", ""},
		"JSON":                   {[]string{"--log-format", "json"}, `{"level":"WARN","msg":"beware","job":"a"}` + "\n", ""},
		"a format nobody knows":  {[]string{"--log-format", "xml"}, "", `unknown value "xml"; valid values: text, json`},
		"a level nobody knows":   {[]string{"--log-level", "trace"}, "", `unknown value "trace"; valid values: debug, info, warn, error`},
		"slog's own level names": {[]string{"--log-level", "INFO+1"}, "", "unknown value"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			a, err := parsed(t, &stderr, tc.args...)
			if err != nil || tc.wantError != "" {
				if err == nil || tc.wantError == "" || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want %q", err, tc.wantError)
				}
				return
			}
			log := a.Logger()
			log.Info("listen", "job", "a")
			log.Warn("beware", "job", "a")
			got := stderr.String()
			if strings.HasPrefix(got, `{"time"`) {
				at, rest, _ := strings.Cut(strings.TrimPrefix(got, `{"time":"`), `",`)
				if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
					t.Error(err)
				}
				got = "{" + rest
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
