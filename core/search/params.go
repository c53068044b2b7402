package search

import (
	"slices"
	"strconv"
)

// Params are the values of hyper-parameters, in the order of their space.
type Params []Param

// Param is a hyper-parameter with its value.
type Param struct {
	Name  string
	Value Value
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

// Get is the value of a parameter by its name.
func (p Params) Get(name string) (Value, bool) {
	i := slices.IndexFunc(p, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return p[i].Value, true
}
