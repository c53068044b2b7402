package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A training that diverges reports NaN or an infinity, which JSON has no numbers for. A metric with such a value is sent as null, is NaN in
// Go, and is worse than any number. What programs write instead of null is read as null.

// measured is the value of a metric: NaN where it is not finite, or larger than anything that is measured.
func measured(value float64) float64 {
	if math.Abs(value) <= mostAmount {
		return value
	}
	return math.NaN()
}

// Equal reports whether metrics are the same; those with values that are not finite may be.
func (m Metric) Equal(o Metric) bool {
	return m.Name == o.Name && m.Step == o.Step && (m.Value == o.Value || math.IsNaN(m.Value) && math.IsNaN(o.Value))
}

// MarshalJSON writes a value that is not finite as null.
func (m Metric) MarshalJSON() ([]byte, error) {
	line := struct {
		Name  string   `json:"name"`
		Step  float64  `json:"step"`
		Value *float64 `json:"value"`
	}{Name: m.Name, Step: m.Step}
	if value := measured(m.Value); !math.IsNaN(value) {
		line.Value = &value
	}
	return json.Marshal(line)
}

// UnmarshalJSON reads null, "NaN", "Infinity" and numbers that are too large as NaN. A value that is missing, or is no number, is an error that
// names the metric: taken as 0, it would be the best loss there is.
func (m *Metric) UnmarshalJSON(text []byte) error {
	var line struct {
		Name        string
		Step, Value json.RawMessage
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	m.Name, m.Step = line.Name, 0
	if len(line.Step) > 0 {
		if bytes.Equal(line.Step, null) {
			return fmt.Errorf("metrics: step of %q is null, must be a number", line.Name)
		}
		if err := json.Unmarshal(line.Step, &m.Step); err != nil {
			return fmt.Errorf("metrics: step of %q: %w", line.Name, err)
		}
	}
	if len(line.Value) == 0 {
		return fmt.Errorf("metrics: value of %q is missing, must be a number, or null where it is not finite", line.Name)
	}
	var read bool
	if m.Value, read = readValue(line.Value); !read {
		return fmt.Errorf("metrics: value of %q is %.40s, must be a number, or null where it is not finite", line.Name, line.Value)
	}
	return nil
}

var null = []byte("null")

// readValue reads the value of a metric; false for what is no number.
func readValue(text []byte) (value float64, read bool) {
	switch {
	case bytes.Equal(text, null):
		return math.NaN(), true
	case text[0] == '"':
		return math.NaN(), isNotFinite(string(bytes.Trim(text, `"`)))
	}
	value, err := strconv.ParseFloat(string(text), 64) // valid JSON: it fails for what is no number, and for one that is too large
	if err != nil && !math.IsInf(value, 0) {
		return 0, false
	}
	return measured(value), true
}

// UnmarshalJSON refuses null, which would count as 0: a checkpoint that holds nothing.
func (c *Checkpointed) UnmarshalJSON(text []byte) error {
	var line struct{ Progress json.RawMessage }
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	c.Progress = 0
	if bytes.Equal(line.Progress, null) {
		return fmt.Errorf("checkpointed: progress is null, must be a number from 0 to %v", mostAmount)
	}
	if len(line.Progress) == 0 {
		return nil
	}
	return json.Unmarshal(line.Progress, &c.Progress)
}

// isNotFinite reports whether a word stands for NaN or an infinity, as Python, C and others write them.
func isNotFinite(word string) bool {
	switch strings.ToLower(strings.TrimLeft(word, "+-")) {
	case "nan", "inf", "infinity":
		return true
	}
	return false
}

// withNull is a line with null in the place of NaN and infinities, which JSON does not have and many programs write.
func withNull(text []byte) []byte {
	replaced := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		word := 0
		if !quoted {
			word = wordLength(text[i:])
		}
		switch {
		case quoted && c == '\\' && i+1 < len(text):
			i++
			replaced = append(replaced, c, text[i])
		case word > 0 && isNotFinite(string(text[i:i+word])):
			replaced, i = append(replaced, null...), i+word-1
		case word > 0:
			replaced, i = append(replaced, text[i:i+word]...), i+word-1
		default:
			quoted = quoted != (c == '"')
			replaced = append(replaced, c)
		}
	}
	return replaced
}

// wordLength is how many bytes a text begins with that a word or a number may have.
func wordLength(text []byte) int {
	for i, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return i
		}
	}
	return len(text)
}
