package coretest

import (
	"fmt"
	"strings"
)

// recorded runs a test and returns what it complained about.
func recorded(test func(TB)) string {
	var r recorder
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(failNow{}) {
				r.Errorf("panic: %v", p) // as go test does
			}
		}()
		test(&r)
	}()
	return strings.TrimSpace(strings.Join(r.failures, "\n"))
}

// recorder is a test that remembers its failures instead of failing.
type recorder struct {
	failures []string
}

// failNow is what a recorder panics with to end a check.
type failNow struct{}

// Helper marks nothing: no line is reported.
func (r *recorder) Helper() {}

// Errorf remembers a failure.
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Fatalf remembers a failure, and ends the check.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(failNow{})
}
