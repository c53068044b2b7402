package main

import (
	"context"
	"io"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/program"
)

// run is the program in this process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program.Run(ctx, args, stdout, stderr, program.Light())
}

// catalog lists the components of the program.
func catalog() quartet.Catalog { return (&cli.App{Engine: program.Light().Engine}).Catalog() }
