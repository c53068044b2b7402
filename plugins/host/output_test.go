package host

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// logged is an output whose clock stands still, and what reached its log: a level, a message and values on each line.
func logged() (*output, *bytes.Buffer) {
	var text bytes.Buffer
	o := newOutput(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "plugin" {
				return slog.Attr{}
			}
			return a
		},
	})), "p")
	o.now = func() time.Time { return time.Unix(1000, 0) }
	return o, &text
}

func TestALineOfAPlugin(t *testing.T) {
	many := `{"@message":"m"`
	for i := range mostValues + 4 {
		many += fmt.Sprintf(`,"k%02d":%d`, i, i)
	}
	for name, tc := range map[string]struct {
		line string
		want string
	}{
		"a trace":                 {`{"@level":"trace","@message":"m"}`, "level=DEBUG msg=m\n"},
		"for debugging":           {`{"@level":"DEBUG","@message":"m"}`, "level=DEBUG msg=m\n"},
		"information":             {`{"@level":"info","@message":"m"}`, "level=INFO msg=m\n"},
		"a warning":               {`{"@level":"warn","@message":"m"}`, "level=WARN msg=m\n"},
		"a warning in full":       {`{"@level":"warning","@message":"m"}`, "level=WARN msg=m\n"},
		"an error":                {`{"@level":"error","@message":"m"}`, "level=ERROR msg=m\n"},
		"no level":                {`{"@message":"m"}`, "level=INFO msg=m\n"},
		"another level":           {`{"@level":"loud","@message":"m"}`, "level=INFO msg=m\n"},
		"a level that is none":    {`{"@level":4,"@message":"m"}`, "level=INFO msg=m\n"},
		"values by name":          {`{"@message":"m","b":true,"a":1.5,"c":null,"d":["x"]}`, `level=INFO msg=m a=1.5 b=true c="" d="[\"x\"]"` + "\n"},
		"the time is ours":        {`{"@message":"m","@timestamp":"now"}`, "level=INFO msg=m\n"},
		"so many values":          {many + "}", "level=INFO msg=m k00=0 k01=1 k02=2 k03=3 k04=4 k05=5 k06=6 k07=7 k08=8 k09=9 k10=10 k11=11 k12=12 k13=13 k14=14 k15=15\n"},
		"values and no message":   {`{"@level":"warn","a":1}`, `level=WARN msg="" a=1` + "\n"},
		"nothing to say":          {`{"@level":"warn"}`, ""},
		"no entry":                {`{"message":"m"}`, `level=WARN msg="{\"message\":\"m\"}"` + "\n"},
		"half an entry":           {`{"@message":"m"`, `level=WARN msg="{\"@message\":\"m\""` + "\n"},
		"plain words":             {`out of memory`, `level=WARN msg="out of memory"` + "\n"},
		"a blank line":            {``, ""},
		"an entry after a blank":  {` {"@message":"m"}`, `level=WARN msg=" {\"@message\":\"m\"}"` + "\n"},
		"control characters":      {"a\x1b[31m", "level=WARN msg=a\n"},
		"in an entry, all of one": {`{"@message":"a\u001b[31m","k\u0000":"v\u001b[2J"}`, "level=INFO msg=a k=v\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o, text := logged()
			o.read(bufio.NewReader(strings.NewReader(tc.line + "\n")))
			if diff := cmp.Diff(tc.want, text.String()); diff != "" {
				t.Errorf("log -want +got:\n%s", diff)
			}
		})
	}
}

// A line counts up to its bound, however it comes, and so does the next one.
func TestALongLineOfAPlugin(t *testing.T) {
	o, _ := logged()
	var lines []int
	o.log = slog.New(lengths(func(n int) { lines = append(lines, n) }))
	long := strings.Repeat("x", longestLine) + strings.Repeat("dropped", 100)
	o.read(bufio.NewReaderSize(strings.NewReader(long+"\n"+strings.Repeat("y", 5000)+"\nz\nunended"), 16))
	if diff := cmp.Diff([]int{core.MaxText, core.MaxText, 1, len("unended")}, lines); diff != "" {
		t.Errorf("lengths of messages -want +got:\n%s", diff)
	}
	if want := "x\n" + strings.Repeat("y", 5000) + "\nz\nunended\n"; !strings.HasSuffix(string(o.tail), want) || len(o.tail) != tailLength {
		t.Errorf("%d bytes are kept, the end %.30q", len(o.tail), o.tail[len(o.tail)-30:])
	}
}

// The end of what was written is kept, to the byte.
func TestTheEndOfTheOutputIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		line int
		want int
	}{
		"less than the bound": {100, 202}, "up to it": {tailLength/2 - 1, tailLength},
		"a byte more": {tailLength / 2, tailLength}, "much more": {3 * tailLength, tailLength},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := logged()
			for _, b := range []byte("ab") {
				o.take(bytes.Repeat([]byte{b}, tc.line))
			}
			whole := strings.Repeat("a", tc.line) + "\n" + strings.Repeat("b", tc.line) + "\n"
			if want := whole[max(0, len(whole)-tailLength):]; len(o.tail) != tc.want || string(o.tail) != want {
				t.Errorf("%d bytes kept, want %d, the last ones", len(o.tail), tc.want)
			}
		})
	}
}

// lengthLog notes the length of each message.
type lengthLog struct {
	slog.Handler
	note func(int)
}

func lengths(note func(int)) slog.Handler {
	return lengthLog{Handler: slog.NewTextHandler(&bytes.Buffer{}, nil), note: note}
}

func (l lengthLog) Handle(_ context.Context, r slog.Record) error { l.note(len(r.Message)); return nil }

// So many lines of a second are passed on, the others are counted, and their number is told with the first line after it or at the end.
func TestLinesOfASecondAreBounded(t *testing.T) {
	const told = "level=WARN msg=\"lines of a plugin were left out: it writes too many\" lines="
	for name, tc := range map[string]struct {
		lines []int // in the one second, and in the next ones
		step  time.Duration
		want  string // the part of the log that says what was left out
		pass  int    // lines of the plugin in the log
	}{
		"none too many":         {[]int{linesPerSecond}, time.Second, "", linesPerSecond},
		"one too many":          {[]int{linesPerSecond + 1}, time.Second, told + "1\n", linesPerSecond},
		"more":                  {[]int{linesPerSecond + 7}, time.Second, told + "7\n", linesPerSecond},
		"and a second later":    {[]int{linesPerSecond + 7, 3}, time.Second, told + "7\n", linesPerSecond + 3},
		"in both":               {[]int{linesPerSecond + 7, linesPerSecond + 2}, time.Second, told + "7\n" + told + "2\n", 2 * linesPerSecond},
		"before a second is up": {[]int{linesPerSecond + 7, 3}, time.Second - 1, told + "10\n", linesPerSecond},
		"long after":            {[]int{linesPerSecond, linesPerSecond, linesPerSecond}, time.Hour, "", 3 * linesPerSecond},
	} {
		t.Run(name, func(t *testing.T) {
			o, text := logged()
			at := time.Unix(1000, 0)
			o.now = func() time.Time { return at }
			for _, n := range tc.lines {
				for range n {
					o.take([]byte("x"))
				}
				at = at.Add(tc.step)
			}
			o.end()
			o.end() // tells it once
			got, pass := "", 0
			for line := range strings.Lines(text.String()) {
				if strings.HasPrefix(line, told) {
					got += line
				} else {
					pass++
				}
			}
			if got != tc.want || pass != tc.pass {
				t.Errorf("%d lines passed on, %q told; want %d, %q", pass, got, tc.pass, tc.want)
			}
		})
	}
}

func TestFinalOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"nothing":                  {nil, ""},
		"one line":                 {[]string{"no licence"}, "no licence"},
		"the last line":            {[]string{"loading", "no licence", "", " "}, "no licence"},
		"a panic before its stack": {[]string{"loading", "panic: out of luck", "", "goroutine 1 [running]:"}, "panic: out of luck"},
		"a fatal error":            {[]string{"fatal error: all goroutines are asleep", "goroutine 1"}, "fatal error: all goroutines are asleep"},
		"the first of several":     {[]string{"panic: first", "panic: second", "end"}, "panic: first"},
		"an entry of a log":        {[]string{`{"@level":"error","@message":"the licence is gone"}`}, "the licence is gone"},
		"control characters":       {[]string{"\x1b[31mred"}, "red"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := logged()
			for _, line := range tc.lines {
				o.take([]byte(line))
			}
			if got := o.finalOutput(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// What a plugin writes goes nowhere when there is no log.
func TestOutputWithoutALog(t *testing.T) {
	o := newOutput(nil, "p")
	o.take([]byte("a word"))
	o.end()
	if got := o.finalOutput(); got != "a word" {
		t.Errorf("final output %q", got)
	}
}
