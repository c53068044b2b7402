package search_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/search"
)

// drawParams draws any parameters that there may be.
func drawParams(t *rapid.T) search.Params {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_.-]{0,8}`), 0, 6, rapid.ID[string]).Draw(t, "names")
	var p search.Params
	for _, name := range names {
		v := search.Number(rapid.Float64().Filter(func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }).Draw(t, "number"))
		if rapid.Bool().Draw(t, "word") {
			v = search.Word(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "1", "nan", "Inf", "0x10", "a b", `a"b`, "a=b", "true", "1e5", "é", "\n", "adam"})).
				Filter(func(s string) bool { return strings.ToValidUTF8(s, "") == s && len(s) <= 1024 }).Draw(t, "word"))
		}
		p = append(p, search.Param{Name: name, Value: v})
	}
	return p
}

// What is written, as text or as JSON, is read as the same.
func TestParamsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		text, err := search.ParseParams(p.String())
		if err != nil || !text.Equal(p) {
			t.Fatalf("%v: %q is read as %v, %v", p, p.String(), text, err)
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var read search.Params
		if err := json.Unmarshal(written, &read); err != nil || !read.Equal(p) {
			t.Fatalf("%s is read as %v, %v", written, read, err)
		}
		again, err := json.Marshal(read)
		if err != nil || string(again) != string(written) {
			t.Fatalf("%s is then written as %s, %v", written, again, err)
		}
		for i := range p {
			if got, ok := read.Get(p[i].Name); !ok || got.String() != p[i].Value.String() {
				t.Fatalf("%s is %v, want %v", p[i].Name, got, p[i].Value)
			}
		}
	})
}

func TestParamsText(t *testing.T) {
	p := search.Params{
		{Name: "lr", Value: search.Number(0.1)},
		{Name: "n", Value: search.Number(1e6)},
		{Name: "optimizer", Value: search.Word("adam")},
		{Name: "one", Value: search.Word("1")},
		{Name: "two", Value: search.Word("a b")},
		{Name: "path", Value: search.Word("/data/x-1.bin")},
	}
	if got, want := p.String(), `lr=0.1 n=1e+06 optimizer=adam one="1" two="a b" path=/data/x-1.bin`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	text, err := json.Marshal(p)
	if got, want := string(text), `{"lr":0.1,"n":1e+06,"optimizer":"adam","one":"1","two":"a b","path":"/data/x-1.bin"}`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestParamsRefuse(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no value":         {"lr", `"lr" is not NAME=VALUE`},
		"no name":          {"=1", "the name is empty"},
		"a bad name":       {"1lr=1", `the name "1lr"`},
		"twice":            {"lr=1 lr=2", `parameter "lr" is given twice`},
		"open quotes":      {`lr="a`, "the quotes do not end"},
		"behind quotes":    {`lr="a"b=1`, `"b=1" follows the quotes`},
		"beyond numbers":   {"lr=1e999", "1e999 is out of range"},
		"a long name":      {strings.Repeat("x", 129) + "=1", "129 bytes"},
		"a long word":      {"x=" + strings.Repeat("x", 1025), "longer than 1024"},
		"too many":         {strings.Repeat("x=1 ", 65), "at most 64"},
		"no UTF-8":         {"x=\xff", "no UTF-8"},
		"no UTF-8, quoted": {`x="\xff"`, "no UTF-8"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if p, err := search.ParseParams(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", p, err, tc.want)
			}
		})
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if text, err := json.Marshal(search.Params{{Name: "x", Value: search.Number(x)}}); err == nil {
			t.Errorf("%v is written as %s", x, text)
		}
	}
	for _, text := range []string{`[]`, `1`, `null`, `{"x":[1]}`, `{"x":{}}`, `{"x":null}`, `{"x":1,"x":2}`, `{"x":1e999}`, `{"1":2}`} {
		var p search.Params
		if err := json.Unmarshal([]byte(text), &p); err == nil && text != "null" {
			t.Errorf("%s is read as %v", text, p)
		}
	}
}
