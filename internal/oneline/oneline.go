// Package oneline makes texts from elsewhere fit to be shown on one line.
package oneline

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapes are the sequences that make a terminal do something.
var escapes = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[@-Z\\\\^_])")

// Text makes a text from elsewhere fit to be shown: valid UTF-8 on one line, without control characters or escape
// sequences, of at most limit bytes. A text that is so already is returned as it is.
func Text(text string, limit int) string {
	if len(text) <= limit && plain(text) {
		return text
	}
	whole := true
	if longest := 4 * limit; len(text) > longest { // what is left out is not looked at
		text, whole = text[:longest], false
	}
	text = escapes.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	text = strings.TrimRight(text, " ")
	const more = "…"
	if len(text) <= limit && whole {
		return text
	}
	end := max(min(len(text), limit-len(more)), 0)
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + more
}

// plain reports whether a text holds printable ASCII only.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
