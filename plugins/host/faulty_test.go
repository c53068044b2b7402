package host_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/sdk"
)

// The test binary is also the plugin that goes wrong, and a host that is killed.
const (
	serveFaulty = "serve-faulty"
	printFirst  = "print-first"
	hostPlugin  = "host-plugin"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case printFirst:
			fmt.Println("faulty plugin, version 1")
			sdk.Main(faulty.Factories()...)
		case serveFaulty:
			sdk.Main(faulty.Factories()...)
		case hostPlugin:
			os.Exit(hostForEver())
		}
	}
	goleak.VerifyTestMain(m)
}

func faultyBinary(mode string) host.Binary {
	return host.Binary{Name: "faulty", Path: os.Args[0], Args: []string{mode}, StartTimeout: 20 * time.Second}
}

// hostForEver starts a plugin, tells its process on stdout, and waits to be killed.
func hostForEver() int {
	p, err := faultyBinary(serveFaulty).Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.PID())
	select {}
}
