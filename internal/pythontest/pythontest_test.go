package pythontest_test

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/internal/pythontest"
)

func TestAPromisedPythonMustServe(t *testing.T) {
	for name, tc := range map[string]struct {
		python, wantErr string
	}{
		"missing":        {"/no/such/python3", "QUARTET_PYTHON: "},
		"not a Python":   {"false", "QUARTET_PYTHON: false cannot run the SDK"},
		"nothing is set": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(pythontest.Variable, tc.python)
			path, err := pythontest.Find()
			switch {
			case tc.wantErr == "" && err != nil:
				t.Errorf("error %v where none was promised", err)
			case tc.wantErr != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.wantErr)):
				t.Errorf("found %q, error %v, want %q", path, err, tc.wantErr)
			}
		})
	}
}
