package search_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
)

func items(t testing.TB, text string) []map[string]any {
	t.Helper()
	var raw []map[string]any
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

const spaceText = `
- {name: lr, log_uniform: [1e-5, 0.1], points: 5}
- {name: momentum, uniform: [0, 0.99]}
- {name: layers, int: [1, 8]}
- {name: batch, log_int: [8, 1024]}
- {name: optimizer, choice: [sgd, adam, 3, true]}
- {name: epochs, fixed: 90}
`

func TestDecodeSpace(t *testing.T) {
	got, problems := search.DecodeSpace("workload.config.space", items(t, spaceText))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	want := search.Space{
		{Name: "lr", Scale: search.LogUniform, Low: 1e-5, High: 0.1, Points: 5},
		{Name: "momentum", Scale: search.Uniform, High: 0.99},
		{Name: "layers", Scale: search.Int, Low: 1, High: 8},
		{Name: "batch", Scale: search.LogInt, Low: 8, High: 1024},
		{Name: "optimizer", Scale: search.Choice, Choices: []search.Value{search.Word("sgd"), search.Word("adam"), search.Number(3), search.Word("true")}},
		{Name: "epochs", Scale: search.Fixed, Choices: []search.Value{search.Number(90)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again search.Space
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("%s (-want +got)\n%s", text, diff)
	}
}

// Every problem is told at once, with its path.
func TestSpaceProblems(t *testing.T) {
	_, got := search.DecodeSpace("space", items(t, `
- {name: lr, log_uniform: [0, 1]}
- {name: lr, uniform: [1, 1]}
- {nam: x, uniform: [0, 1]}
- {name: 3, int: [1, 2]}
- {name: a b, fixed: 1}
- {name: none}
- {name: both, int: [1, 2], choice: [1]}
- {name: one, uniform: [1]}
- {name: word, uniform: [a, 1]}
- {name: truth, uniform: [true, 2]}
- {name: half, int: [1, 2.5]}
- {name: zero, log_int: [0, 4]}
- {name: far, int: [1, 1e300]}
- {name: empty, choice: []}
- {name: twice, choice: [1, "1", a]}
- {name: nested, choice: [[1]]}
- {name: list, fixed: [1]}
- {name: points, choice: [1], points: 3}
- {name: few, uniform: [0, 1], points: 1}
- {name: part, uniform: [0, 1], points: 2.5}
- {name: wide, uniform: [-1.7e308, 1.7e308]}
- {name: inf, uniform: [0, .inf]}
- {name: map, choice: {a: 1}}
`))
	var lines []string
	for _, d := range got {
		lines = append(lines, d.String())
	}
	want := []string{
		"space[0].log_uniform[0]: must be above 0, got 0",
		"space[1].uniform: 1 is not below 1; for one value write fixed",
		`space[1].name: "lr" is also the name of space[0]`,
		`space[2].nam: unknown key; did you mean "name"? valid keys: name, uniform, log_uniform, int, log_int, choice, fixed, points`,
		"space[2].name: required but missing; what the hyper-parameter is called",
		`space[3].name: expected text, got 3; write "3" in quotes`,
		`space[4].name: the name "a b" is not made of letters, digits, _, - and ., or begins with none of letters and _`,
		"space[5]: says nothing of its values; give one of uniform, log_uniform, int, log_int, choice, fixed",
		"space[6].choice: stands beside int; give one of uniform, log_uniform, int, log_int, choice, fixed",
		"space[7].uniform: expected the least and the greatest value; such as [1, 10]",
		`space[8].uniform[0]: expected a number, got "a"`,
		`space[9].uniform[0]: expected a number, got "true"`,
		"space[10].int[1]: expected a whole number, got 2.5",
		"space[11].log_int[0]: must be at least 1, got 0",
		"space[12].int[1]: 1e+300 is beyond 2^53, from where on whole numbers are not exact",
		"space[13].choice: has no values",
		`space[14].choice[1]: "1" is also space[14].choice[0]`,
		"space[15].choice[0]: is neither a number nor a word",
		"space[16].fixed: is neither a number nor a word",
		"space[17].points: is for numbers, not for choice; a grid tries every value of the list",
		"space[18].points: must be from 2 to 1000000, got 1",
		"space[19].points: expected a whole number, got 2.5",
		"space[20].uniform: the ends lie farther apart than a number can say",
		"space[21].uniform[1]: +Inf is no finite number",
		"space[22].choice: expected a list of values; such as [adam, sgd]",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// drawSpace draws any space.
func drawSpace(t *rapid.T) search.Space {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,6}`), 1, 5, rapid.ID[string]).Draw(t, "names")
	var s search.Space
	for _, name := range names {
		d := search.Dimension{Name: name, Scale: search.Scale(rapid.IntRange(0, int(search.Fixed)).Draw(t, "scale"))}
		switch d.Scale {
		case search.Uniform:
			d.Low = rapid.Float64Range(-1e300, 1e300).Draw(t, "low")
			d.High = max(d.Low+rapid.Float64Range(0, 1e300).Draw(t, "width"), d.Low+1e-9, d.Low*(1-1e-9), d.Low*(1+1e-9))
		case search.LogUniform:
			d.Low = rapid.Float64Range(1e-300, 1e300).Draw(t, "low")
			d.High = d.Low * (1 + rapid.Float64Range(1e-9, 1e7).Draw(t, "width"))
		case search.Int:
			d.Low = float64(rapid.IntRange(-1<<52, 1<<51).Draw(t, "low"))
			d.High = d.Low + float64(rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 1<<50)).Draw(t, "width"))
		case search.LogInt:
			d.Low = float64(rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 1<<52)).Draw(t, "low"))
			d.High = d.Low + float64(rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 1<<50)).Draw(t, "width"))
		case search.Fixed:
			d.Choices = []search.Value{search.Word("w")}
		case search.Choice:
			for i := range rapid.IntRange(1, 5).Draw(t, "choices") {
				d.Choices = append(d.Choices, []search.Value{search.Word("a"), search.Number(-1), search.Word(""), search.Number(1e-9), search.Word("b")}[i])
			}
		}
		if !d.Listed() {
			d.Points = rapid.IntRange(2, 4).Draw(t, "points")
		}
		s = append(s, d)
	}
	return s
}

// Whatever the space, each search stays in it, and the space is written and read as the same.
func TestEverySearchStaysInItsSpace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		space := drawSpace(rt)
		text, err := json.Marshal(space)
		if err != nil {
			rt.Fatal(err)
		}
		var again search.Space
		if err := json.Unmarshal(text, &again); err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(space, again); diff != "" {
			rt.Fatalf("%s (-want +got)\n%s", text, diff)
		}
		config := map[string]any{"random": 2}
		for _, kind := range []string{"random", "grid", "tpe"} {
			if kind != "tpe" {
				config = nil
			}
			s := made(t, kind, config, space, rapid.Uint64().Draw(rt, "seed"))
			for i := range 12 {
				trials, err := s.Ask(t.Context(), 1)
				if err != nil {
					rt.Fatal(err)
				}
				if len(trials) == 0 {
					break
				}
				if _, err := space.Arrange(trials[0].Params); err != nil {
					rt.Fatalf("%s: %v: %v", kind, trials[0].Params, err)
				}
				value := rapid.Float64().Draw(rt, "value")
				if _, err := s.Tell(t.Context(), []search.Result{{Trial: i, Kind: search.Finished, AtSeconds: float64(i), Step: 1, Value: value}}); err != nil {
					rt.Fatal(err)
				}
			}
			config = map[string]any{"random": 2}
		}
	})
}

// A grid has every combination once, and the last hyper-parameter changes fastest.
func TestGrid(t *testing.T) {
	space, problems := search.DecodeSpace("space", items(t, `
- {name: lr, log_uniform: [0.001, 0.1], points: 3}
- {name: n, int: [1, 2]}
- {name: even, int: [0, 10], points: 3}
- {name: few, int: [1, 2], points: 5}
- {name: word, choice: [b, a]}
- {name: fixed, fixed: x}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s := made(t, "grid", nil, space, 1)
	trials, err := s.Ask(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, trial := range trials {
		lines = append(lines, trial.Params.String())
	}
	if want := 3 * 2 * 3 * 2 * 2; len(lines) != want || len(slices.Compact(slices.Sorted(slices.Values(lines)))) != want {
		t.Errorf("%d combinations, want %d unlike ones", len(lines), want)
	}
	for at, want := range map[int]string{
		0:  "lr=0.001 n=1 even=0 few=1 word=b fixed=x",
		1:  "lr=0.001 n=1 even=0 few=1 word=a fixed=x",
		2:  "lr=0.001 n=1 even=0 few=2 word=b fixed=x",
		4:  "lr=0.001 n=1 even=5 few=1 word=b fixed=x",
		12: "lr=0.001 n=2 even=0 few=1 word=b fixed=x",
		71: "lr=0.1 n=2 even=10 few=2 word=a fixed=x",
	} {
		if lines[at] != want {
			t.Errorf("combination %d is %s, want %s", at, lines[at], want)
		}
	}
	if !strings.HasPrefix(lines[24], "lr=0.01") && !strings.HasPrefix(lines[24], "lr=0.0099999") && !strings.HasPrefix(lines[24], "lr=0.010000") {
		t.Errorf("the point in the middle of the logarithms is %s", lines[24])
	}
}

// A grid that no memory holds is walked all the same.
func TestGridIsLazy(t *testing.T) {
	space := search.Space{{Name: "a", Scale: search.Int, Low: 0, High: 1 << 51}, {Name: "b", Scale: search.Int, Low: 0, High: 1}}
	trials, err := made(t, "grid", nil, space, 1).Ask(t.Context(), 3)
	if err != nil || len(trials) != 3 || trials[2].Params.String() != "a=1 b=0" {
		t.Errorf("got %v, %v", trials, err)
	}
}

func TestSettingProblems(t *testing.T) {
	space := search.Space{{Name: "lr", Low: 0, High: 1}, {Name: "n", Scale: search.Int, Low: 0, High: 1 << 52}, {Name: "m", Scale: search.Int, Low: 0, High: 1}}
	cases := map[string]struct {
		setting search.Setting
		space   search.Space
		want    []string
	}{
		"unknown": {
			search.Setting{Type: "tpa"},
			space,
			[]string{`w.search.type: unknown search "tpa"; did you mean "tpe"? valid searches: random, grid, list, tpe, external`},
		},
		"config": {
			search.Setting{Type: "tpe", Config: map[string]any{"random": 0, "candidate": 3}},
			space,
			[]string{`w.search.config.candidate: unknown key; did you mean "candidates"? valid keys: random, candidates`, "w.search.config.random: must be at least 1, got 0"},
		},
		"no space":          {search.Setting{Type: "random"}, nil, []string{"w.space: has no hyper-parameters"}},
		"a grid of numbers": {search.Setting{Type: "grid"}, space, []string{`w.space[0]: a grid needs points of "lr", whose values are any number; add points: 5, or list values with choice`}},
		"a grid too large":  {search.Setting{Type: "grid"}, space[1:], []string{"w.space: the grid has 9.01e+15 combinations, at most 2^53 can be counted"}},
		"no command":        {search.Setting{Type: "external"}, nil, []string{"w.search.config.command: required but missing; program and arguments; no shell reads them"}},
		"an empty command":  {search.Setting{Type: "external", Config: map[string]any{"command": []any{}}}, nil, []string{"w.search.config.command: names no program"}},
		"no list":           {search.Setting{Type: "list"}, nil, []string{"w.search.config.trials: required but missing, unless path names a file"}},
		"two lists": {
			search.Setting{Type: "list", Config: map[string]any{"path": "x", "trials": []any{map[string]any{"a": 1}}}},
			nil,
			[]string{"w.search.config.path: stands beside trials"},
		},
		"values that are none": {
			search.Setting{Type: "list", Config: map[string]any{"trials": []any{map[string]any{"a": []any{}}, map[string]any{}, map[string]any{"b c": 1}}}},
			nil,
			[]string{
				"w.search.config.trials[0].a: is neither a number nor a word", "w.search.config.trials[1]: has no values",
				`w.search.config.trials[2]: the name "b c" is not made of letters, digits, _, - and ., or begins with none of letters and _`,
			},
		},
		"outside of the space": {
			search.Setting{Type: "list", Config: map[string]any{"trials": []any{map[string]any{"lr": 0.5, "n": 1.5, "m": 0}, map[string]any{"lr": 2}}}},
			space,
			[]string{`w.search.config.trials[0]: parameter "n": 1.5 is no whole number`, `w.search.config.trials[1]: parameter "lr": 2 is not from 0 to 1`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, problems := tc.setting.Decode("w.search", "w.space", search.Problem{Space: tc.space})
			var got []string
			for _, d := range problems {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestListOfTheConfig(t *testing.T) {
	s := made(t, "list", map[string]any{"trials": []any{map[string]any{"b": 1, "a": "x"}, map[string]any{"a": 2}}}, nil, 1)
	trials, err := s.Ask(t.Context(), 9)
	if err != nil || len(trials) != 2 || trials[0].Params.String() != "a=x b=1" || trials[1].Params.String() != "a=2" {
		t.Errorf("got %v, %v", trials, err)
	}
}

func TestListOfAFile(t *testing.T) {
	space := search.Space{{Name: "lr", Low: 0, High: 1}, {Name: "word", Scale: search.Choice, Choices: []search.Value{search.Word("1"), search.Number(2), search.Word("nan")}}}
	cases := map[string]struct {
		text  string
		space search.Space
		want  []string // trials, or else problems
	}{
		"free":            {"lr,word\n0.5,1\n1e-3,nan\n", nil, []string{"lr=0.5 word=1", `lr=0.001 word="nan"`}},
		"in the space":    {"\ufeffword,lr\n1,0.5\n2.0,1\nnan,0\n", space, []string{`lr=0.5 word="1"`, "lr=1 word=2", `lr=0 word="nan"`}},
		"empty":           {"", nil, []string{"F: the file is empty; its first line names the hyper-parameters"}},
		"no trials":       {"lr\n", nil, []string{"F: the file has no trials"}},
		"header":          {"lr,,lr,a b\n1,2,3,4\n", nil, []string{"F:1:4: the name is empty", `F:1:5: column "lr" is there twice`, `F:1:8: the name "a b" is not made of letters, digits, _, - and ., or begins with none of letters and _`}},
		"cells":           {"lr,word\n0.5\n2,1\n,1\n0.5,3\n1e999,1\n", space, []string{"F:2: 1 cells, the header has 2", `F:3: parameter "lr": 2 is not from 0 to 1`, "F:4:1: lr: is empty", `F:5: parameter "word": 3 is none of "1", 2, "nan"`, "F:6:1: lr: 1e999 is out of range"}},
		"quotes":          {"lr,word\n0.5,\"1\n", space, []string{"F:2:8: extraneous or missing \" in quoted-field"}},
		"another column":  {"lr,words\n0.5,1\n", space, []string{`F:2: parameter "words" is not in the space; did you mean "word"? valid names: lr, word`}},
		"a column absent": {"lr\n0.5\n", space, []string{`F:2: parameter "word" is missing`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "trials.csv")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			s, err := chosen(t, "list", map[string]any{"path": file}, tc.space).New(1, nil)
			if problems, bad := errors.AsType[core.Diagnostics](err); bad {
				for _, d := range problems {
					got = append(got, strings.ReplaceAll(d.String(), file, "F"))
				}
			} else {
				trials, err := s.Ask(t.Context(), 99)
				if err != nil {
					t.Fatal(err)
				}
				for _, trial := range trials {
					got = append(got, trial.Params.String())
				}
				if in := s.(search.Reader).Inputs(); len(in) != 1 || in[0].Path != file || len(in[0].SHA256) != 64 {
					t.Errorf("it was read from %v", in)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, err := chosen(t, "list", map[string]any{"path": "no-such.csv"}, nil).New(1, nil); err == nil || !strings.Contains(err.Error(), "no-such.csv: cannot be read: no such file") {
		t.Errorf("got %v", err)
	}
}

// Two whole numbers so large that their logarithms are the same make a range, too.
func TestParzenInARangeWithoutWidth(t *testing.T) {
	space := search.Space{{Name: "x", Scale: search.LogInt, Low: 286422788815866, High: 286422788815867}}
	s := made(t, "tpe", map[string]any{"random": 2}, space, 0)
	for i := range 12 {
		trials, err := s.Ask(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := space.Arrange(trials[0].Params); err != nil {
			t.Fatalf("trial %d: %v", i, err)
		}
		if _, err := s.Tell(t.Context(), []search.Result{{Trial: i, Kind: search.Finished, AtSeconds: float64(i), Step: 1, Value: 1}}); err != nil {
			t.Fatal(err)
		}
	}
}
