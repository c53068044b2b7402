package render

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Prose breaks sentences into lines that fit the terminal they are written to. Later lines of a sentence are indented. What
// stands in quotes stays whole, and so does a word that is wider than a line: both are to be copied. Elsewhere a sentence is
// a line, which can be searched for, unless the environment says in COLUMNS how wide lines may be.
func Prose(w io.Writer, sentences string) string {
	width := widthOf(w)
	if width <= 0 {
		width, _ = strconv.Atoi(os.Getenv("COLUMNS"))
	}
	if width <= 0 {
		return sentences
	}
	var lines []string
	for sentence := range strings.SplitSeq(sentences, "\n") {
		if utf8.RuneCountInString(sentence) <= width {
			lines = append(lines, sentence)
			continue
		}
		words := wholes(sentence)
		if len(words) == 0 {
			lines = append(lines, "")
			continue
		}
		indent := sentence[:len(sentence)-len(strings.TrimLeft(sentence, " "))]
		line := indent + words[0]
		for _, word := range words[1:] {
			if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width {
				line += " " + word
				continue
			}
			lines = append(lines, line)
			line = indent + "  " + word
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// wholes are the words of a sentence, and what stands in quotes as one of them.
func wholes(sentence string) []string {
	var list []string
	open := false
	for word := range strings.FieldsSeq(sentence) {
		if open {
			list[len(list)-1] += " " + word
		} else {
			list = append(list, word)
		}
		open = open != (strings.Count(word, `"`)%2 == 1)
	}
	return list
}
