package python_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/internal/syncbuffer"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

func TestFaults(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(coretest.MakeJob("only").Replicas(1)).Obj()
	for name, tc := range map[string]struct {
		wantErr string
		wantLog []string
	}{
		"none":       {"", nil},
		"print":      {"", []string{"printed before main", "a line for stdout", "another one"}},
		"log":        {"", []string{"looked at jobs", "component=admission/misbehaving", "jobs=1"}},
		"raise":      {"the policy raised RuntimeError: this is a bug", []string{`level=DEBUG msg="the policy raised"`, "line"}},
		"exit":       {"the policy raised SystemExit: 3", []string{`level=DEBUG msg="the policy raised"`}},
		"wrong_type": {"the policy raised TypeError: admit must answer with Verdict, not (0, 'defer')", nil},
		"die":        {"the process died", nil},
	} {
		t.Run(name, func(t *testing.T) {
			log := &syncbuffer.Buffer{}
			b := policies(t)
			b.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c := host.Component{
				Stage: stagev1.Stage_STAGE_ADMISSION, Type: "misbehaving", ID: "admission/misbehaving", Config: map[string]any{"fault": name},
			}
			a, err := host.Admitter(context.Background(), host.Spec[core.Admitter]{
				ID: c.ID, Plugin: b.Name, Options: options(),
				Dial: func(ctx context.Context) (*host.Session, error) { return b.Session(ctx, c) },
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.Admit(context.Background(), v, v.Jobs)
			_ = a.(interface{ Close() error }).Close() // the log is complete
			if got := fmt.Sprint(err); tc.wantErr == "" && err != nil || !strings.Contains(got, tc.wantErr) {
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			}
			for _, want := range tc.wantLog {
				if !strings.Contains(log.String(), want) {
					t.Errorf("log lacks %q:\n%s", want, log)
				}
			}
		})
	}
}

// TestExchangeAnswersLikeCalls holds the answers over one stream against those to single calls.
func TestExchangeAnswersLikeCalls(t *testing.T) {
	ctx := context.Background()
	p := start(t)
	if _, err := host.Configure(ctx, p.Conn, host.Component{Stage: stagev1.Stage_STAGE_SCALER, Type: "keep", ID: "scaler/keep"}, false); err != nil {
		t.Fatal(err)
	}
	stream, err := host.Calls(ctx, p.Conn, &stagev1.ConfigureResponse{Exchange: true})
	if err != nil {
		t.Fatal(err)
	}
	single, streamed := stagev1.NewScalerServiceClient(p.Conn), stagev1.NewScalerServiceClient(stream)
	for sequence, client := range []stagev1.ScalerServiceClient{single, streamed, streamed, single} {
		answer, err := client.Scale(ctx, &stagev1.ScaleRequest{
			View:           &stagev1.ViewUpdate{Sequence: uint64(sequence), Full: sequence == 0},
			PlacementsEdit: &stagev1.Edit{Steps: []uint32{0, uint32(sequence), 1}}, Placements: []*stagev1.Placement{{Job: int32(sequence)}},
		})
		if err != nil || answer.GetResync() || int(answer.GetNodes()) != sequence+1 {
			t.Fatalf("call %d: got %v, error %v", sequence, answer, err)
		}
	}
	if answer, err := streamed.Scale(ctx, &stagev1.ScaleRequest{View: &stagev1.ViewUpdate{Sequence: 9}}); err != nil || !answer.GetResync() {
		t.Errorf("a gap in the sequence: got %v, error %v, want resync", answer, err)
	}
	_, err = stagev1.NewAdmissionServiceClient(stream).Admit(ctx, &stagev1.AdmitRequest{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `not configured for stage "admission"`) {
		t.Errorf("another stage: got error %v", err)
	}
}
