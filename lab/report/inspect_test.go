package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is wrong with a file of numbers is told on the page, once, however often it is written.
func TestPagesTellWhatIsWrongWithATable(t *testing.T) {
	for name, tc := range map[string]struct{ file, from, to, want string }{
		"moment":             {"usage.csv", "\n10,", "\nsoon,", `usage.csv: row 3, at_s: "soon" is no number.`},
		"batch":              {"efficiency.csv", "0,10,128", "0,10,many", `efficiency.csv: row 2, batch: "many" is no number.`},
		"no moment":          {"usage.csv", "at_s", "when", `usage.csv: there is no column "at_s".`},
		"two columns":        {"efficiency.csv", "at_s,batch", "a,b", `efficiency.csv: there are no columns "at_s", "batch".`},
		"a name":             {"jobs.csv", ",name,", ",called,", `jobs.csv: there is no column "name".`},
		"a tenant's jobs":    {"tenants.csv", "tenant,jobs", "tenant,works", `tenants.csv: there is no column "jobs".`},
		"a moment of rounds": {"rounds.csv", "time_s", "moment", `rounds.csv: there is no column "time_s".`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := full()
			text := string(changed[tc.file].Data)
			if !strings.Contains(text, tc.from) {
				t.Fatalf("%s has no %q", tc.file, tc.from)
			}
			changed[tc.file] = files(map[string]string{"x": strings.Replace(text, tc.from, tc.to, 1)})["x"]
			r, err := ReadRunFS(changed, "x")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(r.Notes(), tc.want) {
				t.Errorf("notes %q", r.Notes())
			}
			before := slices.Clone(r.Problems)
			var first, second bytes.Buffer
			for _, page := range []*bytes.Buffer{&first, &second} {
				if err := r.Write(page); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(before, r.Problems); diff != "" || !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Errorf("to write a page changes the run (-want +got):\n%s", diff)
			}
		})
	}
}
