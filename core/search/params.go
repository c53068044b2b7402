package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Params are the values of hyper-parameters, in the order of their space.
type Params []Param

// Param is a hyper-parameter with its value.
type Param struct {
	Name  string // name of the hyper-parameter
	Value Value  // value of the hyper-parameter
}

// Value is a number or a word.
type Value struct {
	number float64
	word   string // where it is no number
	isWord bool
}

// Number is a value that is a number.
func Number(x float64) Value { return Value{number: x} }

// Word is a value that is no number.
func Word(s string) Value { return Value{word: s, isWord: true} }

// Float is the number; false for a word.
func (v Value) Float() (float64, bool) { return v.number, !v.isWord }

// String is the value as a job is given it: the shortest text of a number that is read as the same number.
func (v Value) String() string {
	if v.isWord {
		return v.word
	}
	return strconv.FormatFloat(v.number, 'g', -1, 64)
}

// Equal reports whether two values are the same, a number being the same as itself whatever its sign of zero.
func (v Value) Equal(o Value) bool {
	return v.isWord == o.isWord && v.word == o.word && (v.number == o.number || v.number != v.number && o.number != o.number)
}

// Get is the value of a parameter by its name.
func (p Params) Get(name string) (Value, bool) {
	i := slices.IndexFunc(p, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return p[i].Value, true
}

// Equal reports whether names and values are the same, in the same order.
func (p Params) Equal(o Params) bool {
	return slices.EqualFunc(p, o, func(a, b Param) bool { return a.Name == b.Name && a.Value.Equal(b.Value) })
}

// bounds of what is read.
const (
	maxParams   = 64
	maxName     = 128  // bytes
	maxWord     = 1024 // bytes
	mostChoices = 10_000
	mostPoints  = 1_000_000
	maxInt      = 1 << 53 // whole numbers up to it are exact
)

// isName is what a hyper-parameter may be called, so that it can be part of a flag or of a variable.
var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxName:
		return fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), maxName)
	case !isName.MatchString(name):
		return fmt.Errorf("the name %q is not made of letters, digits, _, - and ., or begins with none of letters and _", name)
	}
	return nil
}

// check refuses what cannot be written and read again.
func (v Value) check() error {
	switch {
	case !v.isWord && (math.IsNaN(v.number) || math.IsInf(v.number, 0)):
		return fmt.Errorf("%v is no finite number", v.number)
	case len(v.word) > maxWord:
		return fmt.Errorf("a word of %d bytes is longer than %d", len(v.word), maxWord)
	case strings.ToValidUTF8(v.word, "") != v.word:
		return fmt.Errorf("the word %q is no UTF-8", v.word)
	}
	return nil
}

func (p Params) check() error {
	if len(p) > maxParams {
		return fmt.Errorf("%d parameters, at most %d are allowed", len(p), maxParams)
	}
	for i := range p {
		if err := checkName(p[i].Name); err != nil {
			return err
		}
		if err := p[i].Value.check(); err != nil {
			return fmt.Errorf("parameter %q: %w", p[i].Name, err)
		}
		if slices.ContainsFunc(p[:i], func(o Param) bool { return o.Name == p[i].Name }) {
			return fmt.Errorf("parameter %q is given twice", p[i].Name)
		}
	}
	return nil
}

// MarshalJSON writes a number as a number and a word as a string.
func (v Value) MarshalJSON() ([]byte, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	if v.isWord {
		return plainJSON(v.word)
	}
	return []byte(v.String()), nil
}

// plainJSON is json.Marshal without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON reads a number or a string; true and false are the words.
func (v *Value) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return err
	}
	*v, err = valueOf(token)
	return err
}

// valueOf takes what YAML and JSON read.
func valueOf(raw any) (v Value, err error) {
	switch raw := raw.(type) {
	case string:
		v = Word(raw)
	case bool:
		v = Word(strconv.FormatBool(raw))
	case json.Number:
		number, err := strconv.ParseFloat(raw.String(), 64)
		if err != nil {
			return v, fmt.Errorf("%s is out of range", raw)
		}
		v = Number(number)
	case float64:
		v = Number(raw)
	case int:
		v = Number(float64(raw))
	case int64:
		v = Number(float64(raw))
	case uint64:
		v = Number(float64(raw))
	default:
		return v, errors.New("is neither a number nor a word")
	}
	return v, v.check()
}

// MarshalJSON writes one object, the names in their order.
func (p Params) MarshalJSON() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := p[i].Value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", p[i].Name, value) // a name needs no escapes
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads one object and keeps the order of its names.
func (p *Params) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return errors.New("parameters are no object")
	}
	read := Params{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		raw, err := d.Token()
		if err != nil {
			return err
		}
		value, err := valueOf(raw)
		if err != nil {
			return fmt.Errorf("parameter %q: %w", name, err)
		}
		read = append(read, Param{name.(string), value})
		if len(read) > maxParams {
			break
		}
	}
	if err := read.check(); err != nil {
		return err
	}
	*p = read
	return nil
}

// String is "lr=0.1 optimizer=adam". A word that could be taken for a number, or would not stand alone, is in quotes.
func (p Params) String() string {
	parts := make([]string, len(p))
	for i := range p {
		text := p[i].Value.String()
		if p[i].Value.isWord && !standsAlone(text) {
			text = strconv.Quote(text)
		}
		parts[i] = p[i].Name + "=" + text
	}
	return strings.Join(parts, " ")
}

var isPlainWord = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./:+-]*$`)

func standsAlone(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err != nil && isPlainWord.MatchString(word)
}

// ParseParams reads what Params.String writes.
func ParseParams(text string) (Params, error) {
	var p Params
	for rest := strings.TrimLeft(text, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		name, after, found := strings.Cut(rest, "=")
		if !found {
			return nil, fmt.Errorf("parse parameters: %q is not NAME=VALUE", rest)
		}
		word, quoted := "", strings.HasPrefix(after, `"`)
		if quoted {
			prefix, err := strconv.QuotedPrefix(after)
			if err != nil {
				return nil, fmt.Errorf("parse parameters: %q: the quotes do not end", name)
			}
			word, _ = strconv.Unquote(prefix) // which is quoted
			rest = after[len(prefix):]
			if rest != "" && rest[0] != ' ' {
				return nil, fmt.Errorf("parse parameters: %q: %q follows the quotes", name, rest)
			}
		} else {
			word, rest, _ = strings.Cut(after, " ")
		}
		value, err := Word(word), error(nil)
		if !quoted {
			value, err = readValue(word)
		}
		if err == nil {
			err = value.check()
		}
		if err != nil {
			return nil, fmt.Errorf("parse parameters: %q: %w", name, err)
		}
		p = append(p, Param{name, value})
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("parse parameters: %w", err)
	}
	return p, nil
}

// isDecimal is how numbers are written; the rest of what strconv reads, such as 0x10 and Inf, is words.
var isDecimal = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// readValue reads a value without quotes: a number if it looks like one.
func readValue(text string) (Value, error) {
	if !isDecimal.MatchString(text) {
		return Word(text), nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, fmt.Errorf("%s is out of range", text)
	}
	return Number(number), nil
}
