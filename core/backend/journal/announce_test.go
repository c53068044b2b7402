package journal

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// A takeover is logged with its reason, its losses and the decisions that are new, against what the jobs held before; all other
// rounds are silent.
func TestAnnounce(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	a := Announce(log, &core.Cluster{Nodes: []core.Node{{Name: "a", Devices: 2}, {Name: "b", Devices: 2}}})
	submitted := func(id core.JobID, name string) core.Event {
		return core.Event{Kind: core.JobSubmitted, Job: id, Spec: &core.JobSpec{ID: id, Name: name}}
	}
	on := func(node core.NodeID, devices core.DeviceSet) []core.Seat {
		return []core.Seat{{Node: node, Devices: devices}}
	}
	resumed := &core.Resumed{Why: "the config names others", Restored: []string{"allocation/las", "placement/x"}, Lost: []string{"no snapshot"}}
	rounds := []struct {
		report core.Report
		want   []string
	}{
		{core.Report{
			Events:  []core.Event{submitted(0, "stays"), submitted(1, "moves"), submitted(2, "breaks"), submitted(3, "waits")},
			Changes: []core.Change{{Action: core.Start, Job: 0, Seats: on(0, 1)}, {Action: core.Start, Job: 1, Seats: on(0, 2)}, {Action: core.Start, Job: 2, Seats: on(1, 1)}},
		}, nil},
		{core.Report{Repeated: true, Resumed: resumed, Changes: []core.Change{{Action: core.Tune, Job: 0}}}, nil},
		{core.Report{
			View: &core.View{Round: 7}, Resumed: resumed, Events: []core.Event{{Kind: core.JobInterrupted, Job: 2}},
			Changes: []core.Change{
				{Action: core.Tune, Job: 0, By: "las"},
				{Action: core.Move, Job: 1, Seats: on(1, 3), By: "las"},
				{Action: core.Start, Job: 2, Seats: on(0, 2), By: "las"},
			},
		}, []string{
			`level=WARN msg="other policies resume the run" why="the config names others" round=7 keep_what_was_learned="allocation/las placement/x"`,
			`level=WARN msg="a policy resumes without what it had learned" why="no snapshot"`,
			`level=WARN msg="new policy decides differently" job=stays before=a:0 now="tune on a:0" by=las`,
			`level=WARN msg="new policy decides differently" job=moves before=a:1 now="move on b:0,1" by=las`,
			`level=WARN msg="new policy decides differently" job=breaks before=- now="start on a:1" by=las`,
		}},
		{core.Report{Changes: []core.Change{{Action: core.Stop, Job: 1}}}, nil},
		{core.Report{View: &core.View{Round: 9}, Resumed: &core.Resumed{Why: "again"}, Changes: []core.Change{
			{Action: core.Start, Job: 1, Seats: on(0, 1), By: "fifo"}, {Action: core.Stop, Job: 0, By: "fifo"},
		}}, []string{
			`level=WARN msg="other policies resume the run" why=again round=9`,
			`level=WARN msg="new policy decides differently" job=moves before=- now="start on a:0" by=fifo`,
			`level=WARN msg="new policy decides differently" job=stays before=a:0 now=stop by=fifo`,
		}},
	}
	for i, round := range rounds {
		text.Reset()
		if err := a.ObserveRound(&round.report); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(text.String()) {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
		if diff := cmp.Diff(round.want, got); diff != "" {
			t.Errorf("round %d logs (-want +got):\n%s", i, diff)
		}
	}
}
