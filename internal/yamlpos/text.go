package yamlpos

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

// indented finds a line that begins with white space.
var indented = regexp.MustCompile(`(?m)^[\s\p{Z}\x{0085}]`)

// Text is a node of a text that reads back as it is: quoted where it would be read as something else.
func Text(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	if n.Style == yaml.LiteralStyle && indented.MatchString(text) {
		n.Style = yaml.DoubleQuotedStyle // in a block, its own indentation would be taken for that of the document
	}
	return n
}
