package core

import (
	"strings"

	"github.com/agext/levenshtein"
)

// maxSuggested bounds the length of names that Nearest compares: the distance costs the product of both lengths.
const maxSuggested = 64

// Nearest is the valid name that a mistyped one most likely stands for, the first of equally near ones, or "" when
// none is near.
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
	return nearest
}

// SuggestHint is the hint for an unknown name: `did you mean "x"? valid keys: a, b`. The noun names what is listed.
func SuggestHint(name, noun string, valid []string) string {
	hint := "valid " + noun + ": " + strings.Join(valid, ", ")
	if nearest := Nearest(name, valid); nearest != "" {
		hint = `did you mean "` + nearest + `"? ` + hint
	}
	return hint
}
