package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sample = Table{
	Columns: []Column{{Name: "policy"}, {Name: "JCT (s)", Numeric: true}, {Name: "jobs", Numeric: true}, {Name: "note"}},
	Rows: [][]any{
		{"las", 12.5, 3, "a|b"},
		{"tiresias", math.NaN(), 1200, "<two>\nlines, \"quoted\""},
	},
}

func TestWrite(t *testing.T) {
	cases := map[Format]string{
		Text: `policy    JCT (s)  jobs  note
las          12.5     3  a|b
tiresias           1200  <two>
                         lines, "quoted"
`,
		Markdown: `| policy   | JCT (s) | jobs | note                  |
|:---------|--------:|-----:|:----------------------|
| las      |    12.5 |    3 | a\|b                  |
| tiresias |         | 1200 | <two> lines, "quoted" |
`,
		CSV: "policy,JCT (s),jobs,note\nlas,12.5,3,a|b\ntiresias,,1200,\"<two>\nlines, \"\"quoted\"\"\"\n",
		JSON: `[
  {
    "policy": "las",
    "JCT (s)": 12.5,
    "jobs": 3,
    "note": "a|b"
  },
  {
    "policy": "tiresias",
    "JCT (s)": null,
    "jobs": 1200,
    "note": "<two>\nlines, \"quoted\""
  }
]
`,
	}
	for format, want := range cases {
		t.Run(string(format), func(t *testing.T) {
			var got bytes.Buffer
			if err := sample.Write(&got, format); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWriteEmptyJSONIsAList(t *testing.T) {
	var got bytes.Buffer
	if err := (Table{Columns: sample.Columns}).Write(&got, JSON); err != nil {
		t.Fatal(err)
	}
	var list []any
	if err := json.Unmarshal(got.Bytes(), &list); err != nil || list == nil || len(list) != 0 {
		t.Errorf("%s: %v, want an empty list", got.String(), err)
	}
}

type closedPipe struct{}

var errClosedPipe = errors.New("closed pipe")

func (closedPipe) Write([]byte) (int, error) { return 0, errClosedPipe }

func TestWriteReportsErrors(t *testing.T) {
	for _, name := range Formats {
		t.Run(name, func(t *testing.T) {
			if err := sample.Write(closedPipe{}, Format(name)); !errors.Is(err, errClosedPipe) {
				t.Errorf("error = %v, want %v", err, errClosedPipe)
			}
		})
	}
}

func TestFormatSet(t *testing.T) {
	format := Text
	if err := format.Set("csv"); err != nil || format != CSV {
		t.Errorf("Set(csv) = %v and leaves %q", err, format)
	}
	err := format.Set("xml")
	if want := `unknown format "xml"; valid values: table, wide, json, yaml, csv, markdown`; err == nil || err.Error() != want {
		t.Errorf("Set(xml) = %v, want %s", err, want)
	}
}

func TestSpan(t *testing.T) {
	cases := map[string]float64{
		"-": math.NaN(), "0 s": 0, "1.25 µs": 1.25e-6, "850 ms": 0.85, "1 ms": 0.9996e-3, "1.0 s": 0.9999, "42.3 s": 42.31,
		"1m 00s": 59.97, "12m 05s": 725, "1h 00m": 3599.7, "3h 07m": 11220, "47h 59m": 47*3600 + 59*60, "4d 02h": 98 * 3600, "1157407d 10h": 1e11 + 1800, "1e+300 s": 1e300,
		"2d 00h": 48*3600 - 1, "-5.0 s": -5,
	}
	for want, seconds := range cases {
		if got := Span(seconds); got != want {
			t.Errorf("Span(%v) = %q, want %q", seconds, got, want)
		}
	}
}

func TestDeviceTime(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0 s", 12.5: "12.5 s", 3599: "59m 59s", 3600: "1.0 h", 916.2 * 3600: "916.2 h"} {
		if got := DeviceTime(seconds); got != want {
			t.Errorf("DeviceTime(%v) = %q, want %q", seconds, got, want)
		}
	}
	if got := DeviceTime(math.NaN()); got != "-" {
		t.Errorf("DeviceTime of nothing = %q", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 2: "2 nodes"} {
		if got := Count(n, "node"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestDecimal(t *testing.T) {
	if got, want := Percent(0.71349), "71.3 %"; got != want {
		t.Errorf("Percent = %q, want %q", got, want)
	}
	for want, x := range map[string]float64{"4.5e+301": 4.5e301, "-1e+12": -1e12, "999999999999.0": 999999999999, "0.0": 1e-300} {
		if got := Decimal(x, 1, ""); got != want {
			t.Errorf("Decimal(%v) = %q, want %q", x, got, want)
		}
	}
	if got, want := Percent(math.NaN()), "-"; got != want {
		t.Errorf("Percent of nothing = %q, want %q", got, want)
	}
}
