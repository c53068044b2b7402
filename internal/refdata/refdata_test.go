package refdata_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet/internal/refdata"
)

// witness is a test that keeps what it is told instead of ending.
type witness struct {
	testing.TB
	skipped, failed bool
}

type ended struct{}

func (w *witness) Helper()               {}
func (w *witness) Skip(...any)           { w.skipped = true; panic(ended{}) }
func (w *witness) Fatalf(string, ...any) { w.failed = true; panic(ended{}) }

func TestPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		variable, file, want string
		skipped, failed      bool
	}{
		"the variable is not set":   {file: "there.csv", skipped: true},
		"the file is there":         {variable: dir, file: "there.csv", want: filepath.Join(dir, "there.csv")},
		"the file is absent":        {variable: dir, file: "absent.csv", failed: true},
		"the folder is not there":   {variable: filepath.Join(dir, "absent"), file: "there.csv", failed: true},
		"the variable names a file": {variable: filepath.Join(dir, "there.csv"), file: "there.csv", failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(refdata.Variable, tc.variable)
			w, got := &witness{TB: t}, ""
			func() {
				defer func() {
					if r := recover(); r != nil && r != (ended{}) {
						panic(r)
					}
				}()
				got = refdata.Path(w, tc.file)
			}()
			if got != tc.want || w.skipped != tc.skipped || w.failed != tc.failed {
				t.Errorf("Path = %q, skipped %t, failed %t; want %q, %t, %t", got, w.skipped, w.failed, tc.want, tc.skipped, tc.failed)
			}
		})
	}
}
