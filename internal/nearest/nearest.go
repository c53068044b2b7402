// Package nearest finds the name that was meant where another was written.
package nearest

import (
	"math"
	"strings"

	"github.com/agext/levenshtein"
)

// maxSuggested bounds the length of names that Name compares: the distance costs the product of both lengths.
const maxSuggested = 64

// Name is the valid name that a mistyped one most likely stands for, the first of equally near ones, or "" when
// none is near: the one with the fewest letters to change or else, for a name that was cut short, with the fewest words to add,
// as in jct.mean for jct_seconds.mean.
func Name(name string, valid []string) string {
	if len(name) > maxSuggested {
		return ""
	}
	best, found := (len(name)+2)/3+1, ""
	for _, v := range valid {
		if d := levenshtein.Distance(name, v, nil); d < best {
			best, found = d, v
		}
	}
	if found == "" {
		return byWords(words(name), valid)
	}
	return found
}

// byWords is the valid name that has all the words in their order, and the fewest others.
func byWords(wanted, valid []string) (nearest string) {
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
