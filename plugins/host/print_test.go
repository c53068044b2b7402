package host_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// TestWhatAPolicyPrintsIsLogged prints to both streams during a call.
func TestWhatAPolicyPrintsIsLogged(t *testing.T) {
	var log bytes.Buffer
	b := faultyBinary(serveFaulty)
	b.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := host.Component{Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "faulty", ID: "allocation/faulty", Config: core.Encode(faulty.Config{Fault: "print"})}
	allocator, err := host.Allocator(t.Context(), host.Spec[core.Allocator]{
		ID: c.ID, Plugin: "faulty", Options: quickly(host.Fail), Dial: dialBinary(b, c),
	})
	if err != nil {
		t.Fatal(err)
	}
	stages := goodStages()
	stages.Allocation = core.Component[core.Allocator]{ID: c.ID, Policy: allocator}
	if _, err := run(t, stages); err != nil {
		t.Fatal(err)
	}
	if err := allocator.(interface{ Close() error }).Close(); err != nil { // the log is complete
		t.Fatal(err)
	}
	for _, want := range []string{"a word on stdout", "a word on stderr"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, log.String())
		}
	}
}

// What a program prints to stdout after its handshake counts as its output.
func TestWordsAfterTheHandshake(t *testing.T) {
	var log bytes.Buffer
	path := program(t, 0o700, "echo '1|1|unix|/nobody|grpc|"+host.Certificate(t)+"'", "echo a word on stdout")
	p, err := host.Binary{Name: "brief", Path: path, Log: slog.New(slog.NewTextHandler(&log, nil))}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	const want = "a word on stdout"
	if got := p.FinalOutput(); got != want || !strings.Contains(log.String(), want) {
		t.Errorf("final output %q, want %q; the log:\n%s", got, want, &log)
	}
}
