package core

import (
	"fmt"
	"math"
	"strings"

	"github.com/agext/levenshtein"
)

// maxSuggested bounds the length of names that Nearest compares: the distance costs the product of both lengths.
const maxSuggested = 64

// Nearest is the valid name that a mistyped one most likely stands for, the first of equally near ones, or "" when
// none is near: the one with the fewest letters to change or else, for a name that was cut short, with the fewest words to add,
// as in jct.mean for jct_seconds.mean.
func Nearest(name string, valid []string) string {
	if len(name) > maxSuggested {
		return ""
	}
	best, nearest := (len(name)+2)/3+1, ""
	for _, v := range valid {
		if d := levenshtein.Distance(name, v, nil); d < best {
			best, nearest = d, v
		}
	}
	if nearest == "" {
		return nearestByWords(words(name), valid)
	}
	return nearest
}

// nearestByWords is the valid name that has all the words in their order, and the fewest others.
func nearestByWords(wanted, valid []string) (nearest string) {
	if len(wanted) == 0 {
		return ""
	}
	fewest := math.MaxInt
	for _, v := range valid {
		has, left := words(v), wanted
		for _, word := range has {
			if len(left) > 0 && word == left[0] {
				left = left[1:]
			}
		}
		if more := len(has) - len(wanted); len(left) == 0 && more < fewest {
			fewest, nearest = more, v
		}
	}
	return nearest
}

// words are the parts of a name such as a_b.c.
func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("._-/ ", r) })
}

// mostListed is how many valid names a hint lists; of more it suggests the nearest only.
const mostListed = 10

// UnknownName reports that nothing of a kind has a name: a job or a node, say. Where says where it was looked for, as in ` in namespace "x"`, or
// is empty. The hint lists the valid names if these are few, and the nearest of them otherwise.
func UnknownName(noun, name, where string, valid []string) Diagnostics {
	d := Diagnostic{Summary: fmt.Sprintf("there is no %s %q%s", noun, name, where)}
	nearest := Nearest(name, valid)
	switch {
	case len(valid) == 0:
	case len(valid) <= mostListed:
		d.Hint = SuggestHint(name, noun+"s", valid)
	case nearest != "":
		d.Hint = fmt.Sprintf("did you mean %q?", nearest)
	}
	return Diagnostics{d}
}

// SuggestHint is the hint for an unknown name: `did you mean "x"? valid keys: a, b`. The noun names what is listed. A name that is valid is
// not suggested to who wrote it.
func SuggestHint(name, noun string, valid []string) string {
	hint := "valid " + noun + ": " + strings.Join(valid, ", ")
	if nearest := Nearest(name, valid); nearest != "" && nearest != name {
		hint = `did you mean "` + nearest + `"? ` + hint
	}
	return hint
}
