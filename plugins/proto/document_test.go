package proto

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

const document = "../../docs/plugin-protocol.md"

// TestTheDocumentNamesEverything holds the specification to the contract: each message and enum has a section, in which
// each of its fields or values is named and nothing else is a field; each service has one that names its calls.
func TestTheDocumentNamesEverything(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	sections := sectionsOf(string(text))
	check := func(name protoreflect.Name, parts []string) {
		section, there := sections[string(name)]
		if !there {
			t.Errorf("%s has no section %q", document, name)
		}
		for _, part := range parts {
			if !strings.Contains(section, "`"+part+"`") {
				t.Errorf("%s: section %q does not name %q", document, name, part)
			}
		}
		for _, row := range firstCell.FindAllStringSubmatch(section, -1) {
			for _, named := range quoted.FindAllStringSubmatch(row[1], -1) {
				if !slices.Contains(parts, named[1]) {
					t.Errorf("%s: section %q lists %q, which the contract does not have", document, name, named[1])
				}
			}
		}
	}
	for _, file := range files() {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			var fields []string
			for k := range m.Fields().Len() {
				fields = append(fields, string(m.Fields().Get(k).Name()))
			}
			if m.Name() == "Component" {
				fields = append(fields, "Name", "Type", "Doc", "Default", "Required", "Enum", "Min", "Max", "Fields") // of fields_json
			}
			check(m.Name(), fields)
		}
		for i := range file.Enums().Len() {
			e := file.Enums().Get(i)
			var values []string
			for k := range e.Values().Len() {
				values = append(values, string(e.Values().Get(k).Name()))
			}
			check(e.Name(), values)
		}
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			var calls []string
			for k := range s.Methods().Len() {
				calls = append(calls, string(s.Methods().Get(k).Name()))
			}
			check(s.Name(), calls)
		}
	}
}

var (
	heading   = regexp.MustCompile(`(?m)^##+ (.*)$`)
	firstCell = regexp.MustCompile("(?m)^\\| (`[^|]*) \\|")
	quoted    = regexp.MustCompile("`([A-Za-z_]+)`")
)

// sectionsOf is the text below each heading, up to the next one.
func sectionsOf(text string) map[string]string {
	sections := map[string]string{}
	at := heading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections[text[h[2]:h[3]]] += text[h[1]:end]
	}
	return sections
}
