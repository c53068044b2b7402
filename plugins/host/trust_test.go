package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/plugins/host"
)

func TestTrustedOwners(t *testing.T) {
	for name, tc := range map[string]struct {
		owner uint32
		us    int
		want  bool
	}{
		"our own":             {1000, 1000, true},
		"root's":              {0, 1000, true},
		"another's":           {1001, 1000, false},
		"another's, for root": {1000, 0, false},
		"root's, for root":    {0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := host.Trusted(tc.owner, tc.us); got != tc.want {
				t.Errorf("trusted: %v, want %v", got, tc.want)
			}
		})
	}
}

// Whoever owns the file or its folder could replace it.
func TestOwnersOfAFileAndItsFolder(t *testing.T) {
	const another = 4242
	file, err := filepath.EvalSymlinks(program(t, 0o700, "true"))
	if err != nil {
		t.Fatal(err)
	}
	us := uint32(os.Getuid())
	for name, tc := range map[string]struct {
		file, folder uint32
		want         string
	}{
		"ours":                {us, us, ""},
		"root's":              {0, 0, ""},
		"another's file":      {another, us, file + " belongs to user 4242"},
		"in another's folder": {us, another, "the folder " + filepath.Dir(file) + " belongs to user 4242"},
	} {
		t.Run(name, func(t *testing.T) {
			err := host.CheckPermissions(file, func(info os.FileInfo) (uint32, bool) {
				if info.IsDir() {
					return tc.folder, true
				}
				return tc.file, true
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// The owner is looked up where the system tells it: this test needs a file of another user, and only root can make one.
func TestAPluginOfAnotherUserIsNotStarted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away; run the tests as root")
	}
	for name, given := range map[string]func(file string) string{
		"the file":   func(file string) string { return file },
		"its folder": filepath.Dir,
	} {
		t.Run(name, func(t *testing.T) {
			b := installed(t, program(t, 0o700, "true"))
			if err := os.Chown(given(b.Path), 4242, -1); err != nil {
				t.Skipf("files cannot be given away here: %v", err)
			}
			_, err := b.Start(t.Context())
			if err == nil || !strings.Contains(err.Error(), "belongs to user 4242; take it over, or install the plugin yourself") {
				t.Errorf("error %v, want one that names the owner", err)
			}
		})
	}
}
