package host

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Bounds of what a plugin writes, so that it can flood nobody.
const (
	longestLine    = 64 << 10 // bytes of a line that are read; the rest is dropped
	longestQuote   = 200      // bytes of a quotation in a message of ours
	longestValue   = core.MaxText
	mostValues     = 16  // of one log entry
	linesPerSecond = 100 // passed on; the others are counted
)

// output passes on to a log what a plugin writes, line by line, and keeps the end of it.
type output struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	tail    []byte
	second  time.Time // beginning of the second that lines are counted in
	passed  int       // lines passed on in it
	dropped int       // lines since the last one passed on
}

func newOutput(log *slog.Logger, plugin string) *output {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &output{log: log.With("plugin", plugin), now: time.Now} //nolint:forbidigo // bounds how much a plugin writes, and reaches no decision
}

const tailLength = 8 << 10

// read takes in a stream up to its end. It never makes the plugin wait.
func (o *output) read(stream *bufio.Reader) {
	var line []byte
	for {
		part, more, err := stream.ReadLine()
		if err != nil {
			return
		}
		line = append(line, part[:min(len(part), longestLine-len(line))]...)
		if !more {
			o.take(line)
			line = line[:0]
		}
	}
}

// take takes in one line.
func (o *output) take(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(append(o.tail, line...), '\n')
	if extra := len(o.tail) - tailLength; extra > 0 {
		o.tail = append(o.tail[:0], o.tail[extra:]...)
	}
	now := o.now()
	if now.Sub(o.second) >= time.Second {
		o.logDropped()
		o.second, o.passed = now, 0
	}
	if o.passed++; o.passed > linesPerSecond {
		o.dropped++
		return
	}
	e := parseEntry(line)
	if e.message != "" || len(e.values) > 0 {
		o.log.LogAttrs(context.Background(), e.level, e.message, e.values...)
	}
}

// end logs what was left out at the end.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logDropped()
}

func (o *output) logDropped() {
	if o.dropped > 0 {
		o.log.Warn("lines of a plugin were left out: it writes too many", "lines", o.dropped)
		o.dropped = 0
	}
}

// finalOutput returns the line of the tail that says most: why a Go program crashed, or the last one.
func (o *output) finalOutput() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(o.tail)), "\n")
	words := lines[len(lines)-1]
	for _, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			words = line
			break
		}
	}
	return core.CleanText(parseEntry([]byte(words)).message, core.MaxText)
}

// entry is one line of a plugin as our log has it.
type entry struct {
	level   slog.Level
	message string
	values  []slog.Attr
}

// parseEntry reads a line as a log entry in JSON with the keys @level, @message and @timestamp, of any type, and others;
// any other line is what the plugin printed, which is a warning: whoever prints wants to be read.
func parseEntry(line []byte) entry {
	var raw map[string]any
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &raw) != nil || raw["@message"] == nil && raw["@level"] == nil {
		return entry{level: slog.LevelWarn, message: core.CleanText(string(line), longestValue)}
	}
	e := entry{level: slog.LevelInfo, message: textOf(raw["@message"])}
	switch strings.ToLower(textOf(raw["@level"])) {
	case "trace", "debug":
		e.level = slog.LevelDebug
	case "warn", "warning":
		e.level = slog.LevelWarn
	case "error":
		e.level = slog.LevelError
	}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if strings.HasPrefix(key, "@") || len(e.values) == mostValues {
			continue // among them the time, which is ours to tell
		}
		e.values = append(e.values, slog.String(core.CleanText(key, longestQuote), textOf(raw[key])))
	}
	return e
}

// textOf is a value of a log entry as a text.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return core.CleanText(v, longestValue)
	case float64, bool:
		return core.CleanText(fmt.Sprint(v), longestValue)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return core.CleanText(string(text), longestValue)
}
