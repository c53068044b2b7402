package cli

import "github.com/quartet-sched/quartet/core"

// Problem is a single thing wrong with what the user gave; place is a file, a flag or an argument.
func Problem(place, summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: place}, Summary: summary, Hint: hint}}
}

// AsDiagnostics returns the diagnostics of an error, with their positions.
func AsDiagnostics(place string, err error) core.Diagnostics {
	if ds, ok := err.(core.Diagnostics); ok { //nolint:errorlint // it is not wrapped
		return ds
	}
	return core.Diagnostics{{Position: core.Position{File: place}, Summary: err.Error()}}
}
