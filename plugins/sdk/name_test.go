package sdk

import "testing"

func TestNameOf(t *testing.T) {
	for name, tc := range map[string]struct{ built, file, want string }{
		"module":                {"example.com/me/fair-share", "/bin/x", "fair-share"},
		"second major version":  {"example.com/me/fair-share/v2", "/bin/x", "fair-share"},
		"twelfth":               {"example.com/me/fair-share/v12", "/bin/x", "fair-share"},
		"package of a module":   {"example.com/me/v2/fair-share", "/bin/x", "fair-share"},
		"no major version":      {"example.com/me/v1", "/bin/x", "v1"},
		"named like a version":  {"example.com/me/v2x", "/bin/x", "v2x"},
		"from files":            {"command-line-arguments", "/tmp/fair-share", "fair-share"},
		"installed, from files": {"command-line-arguments", "/p/quartet-plugin-fair-share_v1.0.0_x1_linux_amd64", "fair-share"},
		"nothing is known":      {"", "./fair-share", "fair-share"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nameOf(tc.built, tc.file); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
