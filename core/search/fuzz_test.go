package search_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core/search"
)

// What an external search answers is refused, or is what was asked for.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"trials":[{"id":2,"params":{"x":0.5,"n":2,"word":"a"}}],"stop":[0],"done":true}`), 3)
	f.Add([]byte(`{"trials":[{"id":2,"params":{"word":1,"n":2,"x":0.5}},{"id":3,"params":{"x":1e-300,"n":8,"word":"b"}}]}`), 2)
	f.Add([]byte(`{"stop":[1,0,1]}`), 0)
	f.Add([]byte(`{"protocol":1}`), 0)
	f.Add([]byte(`{"error":"\ud800"}`), 0)
	f.Add([]byte(`{"TRIALS":[],"trials":null}{}`), 1)
	space := smallSpace()
	p := search.Params{{Name: "x", Value: search.Number(0.5)}, {Name: "n", Value: search.Number(2)}, {Name: "word", Value: search.Word("a")}}
	f.Fuzz(func(t *testing.T, line []byte, asked int) {
		told := []search.Result{{Trial: 0, AtSeconds: 1, Step: 1, Value: 1}}
		trials, stop, err := search.TakeAnswer(line, space, []search.Params{p, p}, asked, told)
		if err != nil {
			if len(trials) > 0 || len(stop) > 0 {
				t.Fatalf("%v and %v beside %v", trials, stop, err)
			}
			return
		}
		for i, trial := range trials {
			arranged, err := space.Arrange(trial.Params)
			if trial.ID != 2+i || err != nil || !arranged.Equal(trial.Params) {
				t.Fatalf("trial %v, %v", trial, err)
			}
		}
		if len(trials) > max(asked, 0) || !slices.IsSorted(stop) || len(slices.Compact(stop)) != len(stop) || len(stop) > 0 && (stop[0] < 0 || stop[len(stop)-1] > 1) {
			t.Fatalf("%d trials of %d, stop %v", len(trials), asked, stop)
		}
	})
}

// Parameters are refused, or are written and read as the same.
func FuzzParams(f *testing.F) {
	f.Add("lr=0.1 n=1e+06 optimizer=adam one=\"1\"")
	f.Add("x=\"a\\nb\" y=-0 z=0x10")
	f.Add(`{"lr":0.1,"optimizer":"adam"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := search.ParseParams(text); err == nil {
			again, err := search.ParseParams(p.String())
			if err != nil || !again.Equal(p) {
				t.Fatalf("%q is %v, and then %v, %v", text, p, again, err)
			}
		}
		var p, again search.Params
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return
		}
		written, err := json.Marshal(p)
		if err == nil {
			err = json.Unmarshal(written, &again)
		}
		if err != nil || !again.Equal(p) {
			t.Fatalf("%q is %v, and then %s, %v, %v", text, p, written, again, err)
		}
	})
}

// A space is refused, or is written and read as the same.
func FuzzSpace(f *testing.F) {
	f.Add([]byte(`[{"name":"lr","log_uniform":[1e-5,0.1],"points":5},{"name":"n","int":[1,8]},{"name":"o","choice":["a",1,true]},{"name":"e","fixed":90}]`))
	f.Add([]byte(`[{"name":"b","log_int":[1,9007199254740992]},{"name":"u","uniform":[-1,1]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var space, again search.Space
		if json.Unmarshal(text, &space) != nil {
			return
		}
		written, err := json.Marshal(space)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(written, twice) {
			t.Fatalf("%s, and then %s, %v", written, twice, err)
		}
		if len(space) == 0 {
			return
		}
		trials, err := made(t, "random", nil, space, 1).Ask(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials {
			if _, err := space.Arrange(trial.Params); err != nil {
				t.Fatalf("%s: %v: %v", written, trial.Params, err)
			}
		}
	})
}

// A CSV file of trials is refused with a reason, or has trials.
func FuzzTrials(f *testing.F) {
	f.Add([]byte("lr,word\n0.5,a\n1e-3,\"b c\"\n"))
	f.Add([]byte("\ufeffx,n,word\n0.5,2,1\n"))
	f.Add([]byte("a,a\n\n1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, space := range []search.Space{nil, smallSpace()} {
			trials, problems := search.ReadTrials("trials.csv", text, space)
			if len(trials) == 0 && len(problems) == 0 {
				t.Fatal("neither trials nor problems")
			}
			for _, p := range trials {
				if _, err := space.Arrange(p); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A record is refused, or is read up to a whole line.
func FuzzRecord(f *testing.F) {
	head := `{"version":1,"seed":7,"search":{}}` + "\n"
	f.Add([]byte(head + `{"ask":2,"trials":[{"id":0,"params":{"x":1}}]}` + "\n" + `{"tell":[{"trial":0,"kind":"finished","at_seconds":1,"step":"NaN","value":"-Inf"}],"stop":[0]}` + "\n" + `{"as`))
	f.Add([]byte(head + "\n"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, past, err := search.ReadRecord("record", text, []byte("{}"), 7)
		if err != nil {
			return
		}
		if whole > len(text) || whole > 0 && text[whole-1] != '\n' || bytes.IndexByte(text[whole:], '\n') >= 0 || len(past) != max(bytes.Count(text, []byte("\n"))-1, 0) {
			t.Fatalf("%d of %d bytes, %d exchanges", whole, len(text), len(past))
		}
	})
}
