package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// SettingsFrom reads settings that travelled as JSON into the types that a YAML config would give: a number without a
// fraction is an int, a uint64 where only that holds it, and a float64 otherwise. An empty text is nil.
func SettingsFrom(text string) (map[string]any, error) {
	if text == "" {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var settings map[string]any
	if err := d.Decode(&settings); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	for key, value := range settings {
		settings[key] = plain(value)
	}
	return settings, nil
}

func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		return number(value)
	case map[string]any:
		for key, v := range value {
			value[key] = plain(v)
		}
	case []any:
		for i := range value {
			value[i] = plain(value[i])
		}
	}
	return value
}

func number(n json.Number) any {
	if i, err := strconv.Atoi(n.String()); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	f, err := n.Float64()
	if err != nil {
		return n.String() // beyond every number: refused as text where a number is expected
	}
	if i := int(f); float64(i) == f && -maxWhole < f && f < maxWhole {
		return i
	}
	return f
}

// maxWhole bounds the numbers that a float64 counts one by one.
const maxWhole = 1 << 53
