package main

import "github.com/quartet-sched/quartet/core"

// problem is a single thing wrong with what the user gave; place is a file, a flag or an argument.
func problem(place, summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: place}, Summary: summary, Hint: hint}}
}
