package manifests

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentedRights holds the table of docs/kubernetes-install.md to the roles.
func TestDocumentedRights(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/kubernetes-install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What the controller may do\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(quartet[a-z-]*)`( in its namespace)? \\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for part := range strings.SplitSeq(row[4], "; ") { // verbs, and those on one name
			name := ""
			if on, verbs, found := strings.Cut(part, ": "); found {
				name, part = " "+strings.Trim(on, "`")+":", verbs
			}
			verbs := strings.Split(part, ", ")
			slices.Sort(verbs)
			documented = append(documented, row[1]+row[2]+" "+row[3]+name+" "+strings.Join(verbs, ","))
		}
	}
	var want []string
	for role, rights := range rightsOf(render(t, Options{DRA: true, Scaler: true})) {
		if strings.HasPrefix(role, "quartet-trainingjobs") {
			continue
		}
		for _, right := range rights {
			want = append(want, role+" "+right)
		}
	}
	slices.Sort(want)
	slices.Sort(documented)
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("rights (-given +documented):\n%s", diff)
	}
}
