package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/core"
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
			sdk.Main(newFaultyAllocator())
		case serveFaulty:
			sdk.Main(newFaultyAdmitter(), newFaultyAllocator())
		case hostPlugin:
			os.Exit(hostForEver())
		}
	}
	goleak.VerifyTestMain(m)
}

// faultyConfig chooses what goes wrong, in the third round.
type faultyConfig struct {
	Fault  string `config:"fault" doc:"What goes wrong."`
	Marker string `config:"marker" doc:"File that is made when it goes wrong, and keeps it from going wrong again; empty for every time."`
}

const faultyRound = 3

func newFaultyAllocator() core.Factory[core.Allocator] {
	info := core.Info{Type: "faulty", Summary: "first come, first served, until something goes wrong"}
	return core.NewFactory(info, faultyConfig{}, func(c faultyConfig, _ core.Settings) (core.Allocator, error) {
		return &faulty{faultyConfig: c}, nil
	})
}

func newFaultyAdmitter() core.Factory[core.Admitter] {
	info := core.Info{Type: "faulty", Summary: "admits everybody, until something goes wrong"}
	return core.NewFactory(info, faultyConfig{}, func(c faultyConfig, _ core.Settings) (core.Admitter, error) {
		return &faulty{faultyConfig: c}, nil
	})
}

type faulty struct{ faultyConfig }

// due reports whether something goes wrong now.
func (f *faulty) due(v *core.View) bool {
	if f.Fault == "" || v.Round < faultyRound {
		return false
	}
	if f.Marker == "" {
		return true
	}
	file, err := os.OpenFile(f.Marker, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// Allocate grants every candidate its least.
func (f *faulty) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	var grants []core.Grant
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MinReplicas})
	}
	if len(grants) == 0 || !f.due(v) {
		return grants, nil
	}
	first := &grants[0]
	switch f.Fault {
	case "panic":
		panic("index out of luck")
	case "panic_elsewhere":
		go panic("nobody recovers from this")
		select {}
	case "exit":
		fmt.Fprintln(os.Stderr, "the licence server is gone")
		os.Exit(3)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "hang":
		select {}
	case "slow":
		time.Sleep(20 * time.Millisecond)
	case "error":
		return nil, errors.New("the model is not loaded")
	case "print":
		fmt.Println("a word on stdout")
		fmt.Fprintln(os.Stderr, "a word on stderr")
	case "too_many_replicas":
		first.Replicas = 9
	case "unknown_job":
		first.Job = 7777
	case "no_job":
		first.Job = -1
	case "huge_job":
		first.Job = 1<<31 - 1
	case "twice":
		grants = append(grants, *first)
	case "unknown_type":
		first.Accelerator = 5
	}
	return grants, nil
}

// Admit admits everybody.
func (f *faulty) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	if len(waiting) == 0 || !f.due(v) {
		return nil, nil
	}
	verdict := core.Verdict{Job: waiting[0].ID, Code: core.Defer, Reason: core.PolicyDecision}
	switch f.Fault {
	case "unknown_reason":
		verdict.Reason = 99
	case "unknown_code":
		verdict.Code = 99
	case "huge":
		verdict.Message = strings.Repeat("x", 100<<20)
	case "other_job":
		verdict.Job = 7777
	}
	return []core.Verdict{verdict}, nil
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
