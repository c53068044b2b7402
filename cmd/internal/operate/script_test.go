package operate_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/program"
	"github.com/quartet-sched/quartet/cmd/internal/scripttest"
	"github.com/quartet-sched/quartet/core/backend/local"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

func TestMain(m *testing.M) {
	local.KeepIfAsked()
	local.StandInIfAsked(cli.WallClock{})
	testscript.Main(m, map[string]func(){"quartet": func() { program.Main(program.Light()) }, "job": scripttest.Job})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               scripttest.PassMutants,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scripttest.Exits, "waitfor": scripttest.WaitFor, "await": scripttest.Await,
		},
	})
}

// run is the program in this process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program.Run(ctx, args, stdout, stderr, program.Light())
}

// invoke runs a command and returns its exit code and what it writes.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// catalog lists the components of the program.
func catalog() quartet.Catalog { return (&cli.App{Engine: program.Light().Engine}).Catalog() }
