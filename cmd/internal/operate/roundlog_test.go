package operate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// Parsed is an invocation with flags of its own.
func parsed(t *testing.T, stderr *bytes.Buffer, args ...string) (*app, error) {
	t.Helper()
	a := &app{&cli.App{Stderr: stderr}}
	c := &cobra.Command{}
	a.Logs.Register(c)
	return a, c.ParseFlags(args)
}

// eventfulRounds are rounds in which everything happens that is logged.
func eventfulRounds() []*core.Report {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 2).Obj()
	jobs := coretest.MakeView(cluster).Jobs(coretest.MakeJob("a").Replicas(3), coretest.MakeJob("b"), coretest.MakeJob("c"), coretest.MakeJob("d")).Obj().Jobs
	a, b, c, d := jobs[0], jobs[1], jobs[2], jobs[3]
	view := func(round int, waiting int, active ...core.JobID) *core.View {
		v := &core.View{Round: round, NowSeconds: float64(60 * round), Cluster: cluster, Devices: 4, Active: active, Waiting: waiting, Jobs: make([]*core.Job, 4)}
		for _, id := range active {
			v.Jobs[id] = jobs[id]
		}
		return v
	}
	submitted := func(j *core.Job) core.Event { return core.Event{Kind: core.JobSubmitted, Job: j.ID, Spec: j.JobSpec} }
	a.FinishSeconds = 130
	rejected, finished, failed, cancelled := *c, *a, *b, *d
	rejected.State, rejected.WaitingReason = core.Rejected, core.ExceedsCluster
	finished.State, failed.State, cancelled.State = core.Completed, core.Failed, core.Cancelled
	return []*core.Report{
		{
			View: view(1, 1, 0, 1), DevicesUsed: 3, Events: []core.Event{submitted(a), submitted(b), submitted(c)}, Ended: []*core.Job{&rejected},
			Verdicts: []core.Verdict{{Job: 2, Code: core.Reject, Reason: core.ExceedsCluster, By: "pipeline"}},
			Changes: []core.Change{
				{Action: core.Start, Job: 0, Seats: []core.Seat{coretest.Seat(1, 0, 1), coretest.Seat(0, 0)}, By: "placement/p"},
				{Action: core.Discard, Job: 2, By: "pipeline"},
			},
		},
		{View: view(2, 1, 0, 1), DevicesUsed: 1, Changes: []core.Change{
			{Action: core.Stop, Job: 0, Reason: core.PreemptedByPriority, By: "allocation/l"},
			{Action: core.Tune, Job: 1, Tuning: core.Tuning{BatchPerDevice: 8}, By: "elasticity/e"},
			{Action: core.Move, Job: 1, Seats: []core.Seat{coretest.Seat(0, 1)}, By: "placement/p"},
		}},
		{
			View: view(3, 1, 1), Ended: []*core.Job{&finished, &failed, &cancelled},
			Events: []core.Event{{Kind: core.NodeChanged, Node: 1, Health: core.Down}, {Kind: core.JobInterrupted, Job: 1}, {Kind: core.JobInterrupted, Job: 0}},
			Scaled: []core.PoolTarget{{Pool: "p", Nodes: 3, Message: "2 jobs wait"}}, ScaledBy: "scaler/s",
		},
	}
}

func TestRoundLogReportsWhatHappensToJobs(t *testing.T) {
	story := []string{
		`level=INFO msg="job submitted" round=1 job=a replicas=3`,
		`level=INFO msg="job submitted" round=1 job=b replicas=1`,
		`level=INFO msg="job submitted" round=1 job=c replicas=1`,
		`level=INFO msg="job rejected" round=1 job=c reason=exceeds_cluster`,
		`level=INFO msg="job started" round=1 job=a replicas=3 nodes="[t4-1 t4-0]" component=placement/p`,
		`level=INFO msg="job stopped" round=2 job=a reason=preempted_by_priority component=allocation/l`,
		`level=INFO msg="job tuned" round=2 job=b batch_per_device=8 component=elasticity/e`,
		`level=INFO msg="job moved" round=2 job=b replicas=1 nodes=[t4-0] component=placement/p`,
		`level=INFO msg="node changed" round=3 node=t4-1 health=down`,
		`level=INFO msg="job interrupted" round=3 job=b restarts=0`,
		`level=INFO msg="job finished" round=3 job=a jct_seconds=130 restarts=0`,
		`level=INFO msg="job failed" round=3 job=b restarts=0`,
		`level=INFO msg="job cancelled" round=3 job=d`,
		`level=INFO msg="pool scaled" round=3 pool=p nodes=3 component=scaler/s why="2 jobs wait"`,
	}
	rounds := []string{
		`level=DEBUG msg="round held" round=1 time_seconds=60 active=2 waiting=1 running=1 devices_used=3 devices_usable=4 changes=2`,
		`level=DEBUG msg=verdict round=1 job=c verdict=reject why=exceeds_cluster component=pipeline`,
		`level=DEBUG msg="round held" round=2 time_seconds=120 active=2 waiting=1 running=1 devices_used=1 devices_usable=4 changes=3`,
		`level=DEBUG msg="round held" round=3 time_seconds=180 active=1 waiting=1 running=0 devices_used=0 devices_usable=4 changes=0`,
	}
	for name, tc := range map[string]struct {
		level string
		now   bool
		want  []string
	}{
		"at info":  {"info", true, story},
		"at debug": {"debug", true, append(append(append(append([]string{}, story[:5]...), rounds[:2]...), append(append([]string{}, story[5:8]...), rounds[2])...), append(append([]string{}, story[8:]...), rounds[3])...)},
		"at warn":  {"warn", true, nil},
		"replayed": {"debug", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			a, err := parsed(t, &stderr, "--log-level", tc.level)
			if err != nil {
				t.Fatal(err)
			}
			l := &roundLog{log: a.Logger(), now: func() bool { return tc.now }}
			for _, r := range eventfulRounds() {
				if err := l.ObserveRound(r); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for line := range strings.Lines(stderr.String()) {
				got = append(got, strings.TrimSpace(line))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRoundLogIsJSON(t *testing.T) {
	var stderr bytes.Buffer
	a, err := parsed(t, &stderr, "--log-level=debug", "--log-format=json")
	if err != nil {
		t.Fatal(err)
	}
	l := &roundLog{log: a.Logger(), now: func() bool { return true }}
	for _, r := range eventfulRounds() {
		if err := l.ObserveRound(r); err != nil {
			t.Fatal(err)
		}
	}
	lines := bytes.Split(bytes.TrimSpace(stderr.Bytes()), []byte("\n"))
	if len(lines) != 18 {
		t.Errorf("%d lines, want 18", len(lines))
	}
	for _, line := range lines {
		var record struct {
			Time  time.Time
			Msg   string
			Round int
		}
		if err := json.Unmarshal(line, &record); err != nil || record.Time.IsZero() || record.Msg == "" || record.Round == 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
}
