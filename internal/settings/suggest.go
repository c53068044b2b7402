package settings

import (
	"fmt"
	"strings"

	"github.com/quartet-sched/quartet/internal/nearest"
)

// Nearest is the valid name that a mistyped one most likely stands for; "" when none is near.
func Nearest(name string, valid []string) string { return nearest.Name(name, valid) }

// mostListed is how many valid names a hint lists; of more it suggests the nearest only.
const mostListed = 10

// UnknownName reports that nothing of a kind has a name: a job or a node, say. Where says where it was looked for, as in ` in namespace "x"`, or
// is empty. The hint lists the valid names if these are few, and the nearest of them otherwise.
func UnknownName(noun, name, where string, valid []string) Diagnostics {
	d := Diagnostic{Summary: fmt.Sprintf("there is no %s %q%s", noun, name, where)}
	near := nearest.Name(name, valid)
	switch {
	case len(valid) == 0:
	case len(valid) <= mostListed:
		d.Hint = SuggestHint(name, noun+"s", valid)
	case near != "":
		d.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return Diagnostics{d}
}

// SuggestHint is the hint for an unknown name: `did you mean "x"? valid keys: a, b`. The noun names what is listed. A name that is valid is
// not suggested to who wrote it.
func SuggestHint(name, noun string, valid []string) string {
	hint := "valid " + noun + ": " + strings.Join(valid, ", ")
	if near := nearest.Name(name, valid); near != "" && near != name {
		hint = `did you mean "` + near + `"? ` + hint
	}
	return hint
}
