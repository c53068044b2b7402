package render

import (
	"fmt"
	"io"
	"strings"
)

// WriteApart writes parts with an empty line between two.
func WriteApart(w io.Writer, parts []func(io.Writer) error) error {
	for i, part := range parts {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := part(w); err != nil {
			return err
		}
	}
	return nil
}

// Lines is a part that writes lines as prose.
func Lines(lines []string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, Prose(w, strings.Join(lines, "\n"))+"\n")
		return err
	}
}
