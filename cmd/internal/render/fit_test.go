package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// terminal is a writer of a given width.
type terminal struct {
	bytes.Buffer
	columns int
}

func (t *terminal) Columns() int { return t.columns }

var jobs = Table{
	Columns: []Column{{Name: "id", Numeric: true}, {Name: "job"}, {Name: "ran", Numeric: true, Drop: 2}, {Name: "tenant", Wide: true}, {Name: "why", Drop: 1}},
	Rows: [][]any{
		{1, "resnet", "12m 05s", "a", "waiting_for_devices (wants 4 devices, 2 available)"},
		{12, "übersetzer-mit-langem-namen", "1 s", "b", ""},
	},
}

func TestTablesFitTheTerminal(t *testing.T) {
	for columns, want := range map[int]string{
		0: `id  job                              ran  why
 1  resnet                       12m 05s  waiting_for_devices (wants 4 devices, 2 available)
12  übersetzer-mit-langem-namen      1 s
`,
		70: `id  job                              ran  why
 1  resnet                       12m 05s  waiting_for_devices (wants 4
                                          devices, 2 available)
12  übersetzer-mit-langem-namen      1 s
`,
		56: `id  job                        why
 1  resnet                     waiting_for_devices
                               (wants 4 devices, 2
                               available)
12  übersetzer-mit-langem-nam
    en
`,
		30: `id  job
 1  resnet
12  übersetzer-mit-langem-name
    n
`,
		14: `id  job
 1  resnet
12  übersetzer
    -mit-lange
    m-namen
`,
	} {
		w := &terminal{columns: columns}
		if err := jobs.Write(w, Text); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", columns, diff)
		}
	}
}

// Numbers are not wrapped: where they do not fit, the cells of a row stand below each other.
func TestNumbersFitTheTerminal(t *testing.T) {
	numbers := Table{
		Columns: []Column{{Name: "metric"}, {Name: "n", Numeric: true}, {Name: "baseline", Numeric: true}, {Name: "mean", Numeric: true}, {Name: "interval"}},
		Rows:    [][]any{{"jct_seconds.mean", 2, "37m 17s", "37m 18s", "[+1.2 %, +1.3 %]"}, {"restarts", 2, "0", "0", ""}},
	}
	want := `what      value
metric    jct_seconds.mean
n         2
baseline  37m 17s
mean      37m 18s
interval  [+1.2 %, +1.3 %]

metric    restarts
n         2
baseline  0
mean      0
`
	for columns, want := range map[int]string{
		30: want,
		41: `metric    n  baseline     mean  interval
jct_seco  2   37m 17s  37m 18s  [+1.2 %,
nds.mean                        +1.3 %]
restarts  2         0        0
`,
		40: `metric    n  baseline     mean  interval
jct_seco  2   37m 17s  37m 18s  [+1.2 %,
nds.mean                        +1.3 %]
restarts  2         0        0
`,
		39: want,
	} {
		w := &terminal{columns: columns}
		if err := numbers.Write(w, Text); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", columns, diff)
		}
	}
}

func TestWideShowsAll(t *testing.T) {
	want := `id  job                              ran  tenant  why
 1  resnet                       12m 05s  a       waiting_for_devices (wants 4 devices, 2 available)
12  übersetzer-mit-langem-namen      1 s  b
`
	w := &terminal{columns: 20}
	if err := jobs.Write(w, Wide); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A table of text fits every line that leaves each column its least width, and loses no word.
func TestFitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "columns")
		line := rapid.IntRange(n*(leastWidth+gap), 120).Draw(t, "line")
		var table Table
		for range n {
			table.Columns = append(table.Columns, Column{Name: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name")})
		}
		var words []string
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			var row []any
			for range n {
				cell := rapid.StringMatching(`([a-zé]{1,8}( [a-z]{1,8}){0,12})?`).Draw(t, "cell")
				words = append(words, strings.Fields(cell)...)
				row = append(row, cell)
			}
			table.Rows = append(table.Rows, row)
		}
		w := &terminal{columns: line}
		if err := table.Write(w, Text); err != nil {
			t.Fatal(err)
		}
		for shown := range strings.Lines(w.String()) {
			if got := utf8.RuneCountInString(strings.TrimSuffix(shown, "\n")); got > line {
				t.Fatalf("a line has %d characters, the terminal %d:\n%s", got, line, w.String())
			}
		}
		for _, word := range words {
			if !strings.Contains(w.String(), word) {
				t.Fatalf("%q is lost:\n%s", word, w.String())
			}
		}
	})
}

// What is written as YAML reads back as the JSON says, in the same order.
func TestYAML(t *testing.T) {
	var got bytes.Buffer
	if err := sample.Write(&got, YAML); err != nil {
		t.Fatal(err)
	}
	want := `- policy: las
  JCT (s): 12.5
  jobs: 3
  note: a|b
- policy: tiresias
  JCT (s): null
  jobs: 1200
  note: |-
    <two>
    lines, "quoted"
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestYAMLReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			name := rapid.String().Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				value[name] = rapid.SampledFrom([]string{"", "yes", "null", "1e3", "0x1", "- a", "a: b", "#", "2026-01-01", "~", "\u2028", "tab\there", "\t\n", "a\n\tb\n", "\n a", " a\nb", "a\n\nb\n", "\u0085\n"}).Draw(t, "text")
			case 1:
				value[name] = rapid.String().Draw(t, "text")
			case 2:
				value[name] = []any{}
			default:
				value[name] = map[string]any{"x": nil, "y": true}
			}
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Skipf("the draw has no JSON: %v", err)
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := AsYAML(&out, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var back any
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatalf("%s\nis written as\n%s: %v", text, out.String(), err)
		}
		if diff := cmp.Diff(plain, back); diff != "" {
			t.Fatalf("%s\nis written as\n%s(-want +got):\n%s", text, out.String(), diff)
		}
	})
}
