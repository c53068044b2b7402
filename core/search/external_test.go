package search_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core/search"
)

const (
	helloAnswer = `!read;;{"protocol":1}`
	proposesTwo = `!read;;{"trials":[{"id":0,"params":{"x":0.5,"n":2,"word":"a"}},{"id":1,"params":{"x":0.5,"n":2,"word":"a"}}]}`
	first       = `!read;;{"trials":[{"id":0,"params":{"x":0.5,"n":2,"word":"a"}}]}`
)

func smallSpace() search.Space {
	return search.Space{
		{Name: "x", Low: 0, High: 1},
		{Name: "n", Scale: search.Int, Low: 1, High: 8},
		{Name: "word", Scale: search.Choice, Choices: []search.Value{search.Word("a"), search.Word("b"), search.Number(1)}},
	}
}

// An external search that breaks is an error that says how, and nothing of it is left.
func TestExternalFaults(t *testing.T) {
	folder := t.TempDir()
	proposes := func(trials string) string { return `!read;;{"trials":[` + trials + `]}` }
	trial := func(id, params string) string { return `{"id":` + id + `,"params":` + params + `}` }
	good := `{"x":0.5,"n":2,"word":"a"}`
	cases := map[string]struct {
		script  []string // after the answer to hello, unless it begins with !hello
		want    string
		timeout string // 10s if left out
		told    bool   // the fault comes in answer to a tell
	}{
		"dies before hello":              {script: []string{"!hello", "!exit 3"}, want: "hello: it ended: exit status 3"},
		"dies at hello":                  {script: []string{"!hello", "!read;;!exit 4"}, want: "exit status 4"},
		"dies at once":                   {script: []string{"!exit 5"}, want: "exit status 5"},
		"ends well and early":            {script: []string{"!read;;!exit 0"}, want: "it ended: exit status 0"},
		"dies in the middle of a line":   {script: []string{`!read;;!half {"trials":[;;!exit 6`}, want: "exit status 6"},
		"is killed":                      {script: []string{"!read;;!kill"}, want: "signal: killed"},
		"dies later":                     {script: []string{first, "!exit 7"}, want: "exit status 7", told: true},
		"last output":                    {script: []string{"!read;;!words one;;!words no such module;;!exit 1"}, want: `exit status 1; its last output: "one\nno such module"`},
		"many last words":                {script: []string{"!read;;" + strings.Repeat("!words chatter;;", 50) + "!words end;;!exit 1"}, want: `chatter\nend"`},
		"silent":                         {script: []string{"!read;;!hang"}, want: "does not answer in 300ms", timeout: "300ms"},
		"silent at hello":                {script: []string{"!hello", "!hang"}, want: "hello: it does not answer in 300ms", timeout: "300ms"},
		"silent with words":              {script: []string{"!read;;!words stuck;;!hang"}, want: `300ms; its last output: "stuck"`, timeout: "300ms"},
		"half a line":                    {script: []string{`!read;;!half {"trials":[;;!hang`}, want: "does not answer", timeout: "300ms"},
		"closes its output":              {script: []string{"!read;;!mute;;!hang"}, want: "does not answer", timeout: "300ms"},
		"a long line":                    {script: []string{"!read;;!long;;!hang"}, want: "longer than 1048576 bytes"},
		"a line without end":             {script: []string{"!read;;!endless"}, want: "longer than 1048576 bytes"},
		"no JSON":                        {script: []string{"!read;;hello there"}, want: `"hello there" is no JSON object`},
		"an empty line":                  {script: []string{"!read;;"}, want: `"" is no JSON object: unexpected EOF`},
		"null":                           {script: []string{"!read;;null"}, want: "is no JSON object"},
		"a list":                         {script: []string{"!read;;[1]"}, want: "is no JSON object"},
		"two objects":                    {script: []string{`!read;;{} {}`}, want: "more than one JSON object"},
		"rubbish behind":                 {script: []string{`!read;;{}x`}, want: "more than one JSON object"},
		"deep":                           {script: []string{"!read;;!deep"}, want: "is no JSON object"},
		"NaN":                            {script: []string{proposes(trial("0", `{"x":NaN,"n":2,"word":"a"}`))}, want: "is no JSON object: invalid character 'N'"},
		"no UTF-8":                       {script: []string{proposes(trial("0", "{\"x\":0.5,\"n\":2,\"word\":\"\xff\"}"))}, want: "is none of"},
		"an unknown key":                 {script: []string{`!read;;{"trails":[]}`}, want: `unknown key "trails"; did you mean "trials"?`},
		"an unknown key of a trial":      {script: []string{proposes(`{"id":0,"params":` + good + `,"prams":1}`)}, want: `unknown field "prams"`},
		"an error of its own":            {script: []string{`!read;;{"error":"no sampler \"tpa\""}`}, want: `it says: no sampler "tpa"`},
		"an error at hello":              {script: []string{"!hello", `!read;;{"error":"not for me"}`}, want: "hello: it says: not for me"},
		"another protocol":               {script: []string{"!hello", `!read;;{"protocol":2}`}, want: "it speaks protocol 2, not 1"},
		"no protocol":                    {script: []string{"!hello", `!read;;{}`}, want: "it speaks protocol 0, not 1"},
		"trials at hello":                {script: []string{"!hello", `!read;;{"protocol":1,"trials":[` + trial("0", good) + `]}`}, want: "more than its protocol"},
		"the protocol again":             {script: []string{`!read;;{"protocol":1}`}, want: "protocol is said once"},
		"more than asked for":            {script: []string{proposes(trial("0", good) + "," + trial("1", good))}, want: "2 trials are proposed, 1 were asked for"},
		"trials to a tell":               {script: []string{first, proposes(trial("1", good))}, want: "1 trials are proposed, 0 were asked for", told: true},
		"another number":                 {script: []string{proposes(trial("1", good))}, want: "trial 1 is proposed, the next number is 0"},
		"a negative number":              {script: []string{proposes(trial("-1", good))}, want: "trial -1 is proposed, the next number is 0"},
		"a fraction as number":           {script: []string{proposes(trial("0.5", good))}, want: "cannot unmarshal number 0.5"},
		"a huge number":                  {script: []string{proposes(trial("99999999999999999999", good))}, want: "cannot unmarshal number"},
		"a word as number":               {script: []string{proposes(trial(`"0"`, good))}, want: "cannot unmarshal string"},
		"no number":                      {script: []string{proposes(`{"params":` + good + `}`)}, want: "lacks its id or its params"},
		"no parameters":                  {script: []string{proposes(`{"id":0}`)}, want: "lacks its id or its params"},
		"parameters that are none":       {script: []string{proposes(trial("0", `[1]`))}, want: "parameters are no object"},
		"a parameter is missing":         {script: []string{proposes(trial("0", `{"x":0.5,"word":"a"}`))}, want: `trial 0: parameter "n" is missing`},
		"a parameter too many":           {script: []string{proposes(trial("0", `{"x":0.5,"n":2,"word":"a","xx":1}`))}, want: `parameter "xx" is not in the space; did you mean "x"?`},
		"a parameter twice":              {script: []string{proposes(trial("0", `{"x":0.5,"n":2,"word":"a","n":3}`))}, want: `parameter "n" is given twice`},
		"a number outside":               {script: []string{proposes(trial("0", `{"x":1.5,"n":2,"word":"a"}`))}, want: `parameter "x": 1.5 is not from 0 to 1`},
		"a number beyond numbers":        {script: []string{proposes(trial("0", `{"x":1e999,"n":2,"word":"a"}`))}, want: `parameter "x": 1e999 is out of range`},
		"no whole number":                {script: []string{proposes(trial("0", `{"x":0.5,"n":2.5,"word":"a"}`))}, want: `parameter "n": 2.5 is no whole number`},
		"a word where a number is":       {script: []string{proposes(trial("0", `{"x":"0.5","n":2,"word":"a"}`))}, want: `parameter "x": "0.5" is no number`},
		"a list where a number is":       {script: []string{proposes(trial("0", `{"x":[1],"n":2,"word":"a"}`))}, want: `parameter "x": is neither a number nor a word`},
		"none of the choices":            {script: []string{proposes(trial("0", `{"x":0.5,"n":2,"word":"c"}`))}, want: `"c" is none of "a", "b", 1`},
		"a number as a word":             {script: []string{proposes(trial("0", `{"x":0.5,"n":2,"word":"1"}`))}, want: `"1" is none of "a", "b", 1`},
		"stops without being told":       {script: []string{`!read;;{"stop":[0]}`}, want: "without new results"},
		"stops what it did not propose":  {script: []string{first, `!read;;{"stop":[1]}`}, want: "trial 1 is stopped and was never proposed", told: true},
		"stops a negative trial":         {script: []string{first, `!read;;{"stop":[-1]}`}, want: "trial -1 is stopped and was never proposed", told: true},
		"stops twice at once":            {script: []string{first, `!read;;{"stop":[0,0]}`}, want: "trial 0 is stopped twice", told: true},
		"stops what ended before":        {script: []string{proposesTwo, `!read;;{}`, `!read;;{"stop":[0]}`}, want: "trial 0 is stopped and has ended", told: true},
		"stops with a word":              {script: []string{first, `!read;;{"stop":["0"]}`}, want: "cannot unmarshal string", told: true},
		"leaves a child that holds on":   {script: []string{"!read;;!child " + filepath.Join(folder, "child") + ";;!exit 8"}, want: "exit status 8"},
		"leaves a child outside":         {script: []string{"!read;;!stray " + filepath.Join(folder, "stray") + ";;!exit 9"}, want: "exit status 9"},
		"leaves a child and hangs":       {script: []string{"!read;;!child " + filepath.Join(folder, "hangs") + ";;!hang"}, want: "does not answer", timeout: "500ms"},
		"speaks before it is spoken to":  {script: []string{"!hello", `{"protocol":1}`, "!exit 0"}, want: "it"}, // as an answer or as a line too many, as fast as it is
		"hello from who does not listen": {script: []string{"!hello", `!exit 0`}, want: "it ended: exit status 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			script := append([]string{helloAnswer}, tc.script...)
			if tc.script[0] == "!hello" {
				script = tc.script[1:]
			}
			command := []any{os.Args[0], "external", "script"}
			for _, answer := range script {
				command = append(command, answer)
			}
			timeout := tc.timeout
			if timeout == "" {
				timeout = "10s"
			}
			s := made(t, "external", map[string]any{"command": command, "timeout": timeout}, smallSpace(), 1)
			asked := 1 + strings.Count(script[len(script)-min(len(script), 3)], `"id":1`)
			_, err := s.Ask(t.Context(), asked)
			if asked == 2 && err == nil {
				_, err = s.Tell(t.Context(), []search.Result{{Trial: 0, Kind: search.Finished, AtSeconds: 0, Step: 1, Value: 1}})
			}
			if tc.told {
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Tell(t.Context(), []search.Result{{Trial: asked - 1, AtSeconds: 1, Step: 1, Value: 1}})
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `search "`+os.Args[0][:min(len(os.Args[0]), 100)]) {
				t.Errorf("got %v, want an error of the command with %q", err, tc.want)
			}
			_, askErr := s.Ask(t.Context(), 1)
			_, tellErr := s.Tell(t.Context(), nil)
			if fmt.Sprint(askErr) != fmt.Sprint(err) || fmt.Sprint(tellErr) != fmt.Sprint(err) {
				t.Errorf("afterwards %v and %v, want the same error", askErr, tellErr)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, name := range []string{"child", "hangs"} {
		if !released(t, filepath.Join(folder, name)) {
			t.Errorf("%s: the child of the search is left", name)
		}
	}
	_ = syscall.Kill(pidIn(t, filepath.Join(folder, "stray")), syscall.SIGKILL)
}

func pidIn(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// released reports whether nobody holds a lock, or soon does not.
func released(t *testing.T, path string) bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for range 200 { // the kernel takes a moment to end processes
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func TestExternalThatCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "no-program")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"/no/such/program", "no-such-program-on-the-path", file} {
		s := made(t, "external", map[string]any{"command": []any{command}}, smallSpace(), 1)
		if _, err := s.Ask(t.Context(), 1); err == nil || !strings.Contains(err.Error(), command) {
			t.Errorf("%s: got %v, want an error that names it", command, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A context that ends ends the wait, and the search with it.
func TestExternalInterrupted(t *testing.T) {
	s := made(t, "external", map[string]any{"command": []any{os.Args[0], "external", "script", helloAnswer, "!read;;!hang"}}, smallSpace(), 1)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Ask(ctx, 1); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// What a search says on standard error goes to the log.
func TestExternalLogs(t *testing.T) {
	var text bytes.Buffer
	c := chosen(t, "external", map[string]any{"command": []any{os.Args[0], "external", "script", helloAnswer, "!words sampling;;" + first}}, smallSpace())
	s, err := c.New(1, slog.New(slog.NewTextHandler(&text, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ask(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "line=sampling") || !strings.Contains(text.String(), "search=external") {
		t.Errorf("the log says %q", text.String())
	}
}

// One that says it is done is not asked again, and is told on.
func TestExternalDone(t *testing.T) {
	s := made(t, "external", map[string]any{"command": []any{
		os.Args[0], "external", "script", helloAnswer,
		`!read;;{"done":true,"trials":[{"id":0,"params":{"x":0.5,"n":2,"word":1}}]}`, `!read;;{"stop":[0]}`, `!read;;{"stop":[0]}`, `!read;;{"stop":[0]}`,
	}}, smallSpace(), 1)
	defer s.Close()
	trials, err := s.Ask(t.Context(), 3)
	if err != nil || len(trials) != 1 || trials[0].Params.String() != "x=0.5 n=2 word=1" {
		t.Fatalf("got %v, %v", trials, err)
	}
	if trials, err := s.Ask(t.Context(), 3); len(trials) > 0 || err != nil {
		t.Errorf("after it was done: %v, %v", trials, err)
	}
	if stop, err := s.Tell(t.Context(), []search.Result{{Trial: 0, AtSeconds: 1, Step: 1, Value: 1}}); err != nil || len(stop) != 1 {
		t.Errorf("stop %v, %v, want trial 0", stop, err)
	}
	if trials, err := s.Ask(t.Context(), 3); len(trials) > 0 || err != nil {
		t.Errorf("after it was told more: %v, %v", trials, err)
	}
	// Said again it needs nothing, nor of a trial that just ended. Later it is a fault.
	for _, kind := range []search.Kind{search.Report, search.Stopped} {
		if stop, err := s.Tell(t.Context(), []search.Result{{Trial: 0, Kind: kind, AtSeconds: 1, Step: 1, Value: 1}}); err != nil || len(stop) > 0 {
			t.Errorf("stop %v, %v, want none", stop, err)
		}
	}
}
