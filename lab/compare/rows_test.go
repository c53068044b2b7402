package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A unit of one pair is its value to the last bit; one of several is their mean, and for ratios that of the logarithms.
func TestMeansOfUnits(t *testing.T) {
	t.Parallel()
	var u units
	for _, p := range []struct {
		unit  string
		value float64
	}{{"b", 1}, {"a", 3}, {"b", 4}, {"c", 2}, {"c", 2}, {"b", 16}} {
		u.add(p.unit, p.value)
	}
	for logarithmic, want := range map[bool][]float64{false: {7, 3, 2}, true: {4, 3, 2}} {
		got := u.means(logarithmic)
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" || got[1] != 3 {
			t.Errorf("logarithmic %v (-want +got):\n%s", logarithmic, diff)
		}
	}
}

// A refusal lists ten differences, and counts the others.
func TestRefusalsAreShort(t *testing.T) {
	t.Parallel()
	for n, more := range map[int]string{1: "", 9: "", 10: "", 11: "and 1 more", 25: "and 15 more"} {
		o := &Other{Side: &Side{Label: "b"}}
		for i := range n {
			o.Unpaired = append(o.Unpaired, fmt.Sprintf("run %d", i))
		}
		text := o.refuse(&Side{Label: "a"}, "").Error()
		if got := strings.Count(text, "has no partner"); got != min(n, mostListed) {
			t.Errorf("%d differences: %d are listed", n, got)
		}
		if told := strings.Contains(text, " more"); told != (more != "") || !strings.Contains(text, more) {
			t.Errorf("%d differences: %q, want %q", n, text, more)
		}
	}
}
