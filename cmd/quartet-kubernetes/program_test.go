package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/quartet-sched/quartet/cmd/internal/program"
)

// run is the program in this process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program.Run(ctx, args, stdout, stderr, engine())
}

func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}
