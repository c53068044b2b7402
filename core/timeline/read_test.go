package timeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/timeline"
)

func TestReadTimeline(t *testing.T) {
	tests := map[string]struct {
		rows string
		want []timeline.Stay
		err  string
	}{
		"a stay": {
			rows: "3,1.5,2,t4+v100,3,2,a:1+b:6,16,2,moved",
			want: []timeline.Stay{{
				Job: 3, Start: 1.5, End: 2, Accelerator: "t4+v100", Seats: []timeline.Seat{{"a", 1}, {"b", 6}},
				BatchPerDevice: 16, AccumulationSteps: 2, How: timeline.Moved,
			}},
		},
		"names with signs": {
			rows: `0,0,0,t4,3,2,"x+y:1+u:v,w:3",,,failed`,
			want: []timeline.Stay{{Accelerator: "t4", Seats: []timeline.Seat{{"x+y", 1}, {"u:v,w", 3}}, How: timeline.Failed}},
		},
		"no rows": {},
		"wrong cells": {
			rows: "x,nan,1,t4,2,1,a:1,16,0,gone",
			err: `timeline.csv:2:1: column job is "x", want a whole number of at least 0
timeline.csv:2:3: column start_s is "nan", want a number
timeline.csv:2:12: column replicas is "2", want as many as there are devices in seats
timeline.csv:2:25: column end is "gone", want one of finished, failed, cancelled, preempted, moved, resized, interrupted, unfinished`,
		},
		"backwards": {rows: "0,2,1,t4,1,1,a:1,,,moved", err: `timeline.csv:2:5: column end_s is "1", want a moment not before start_s`},
		"no seats": {
			rows: "0,0,1,t4,1,1,a:0,,,moved",
			err:  `timeline.csv:2:14: column seats is "a:0", want NODE:MASK joined by plus signs, the mask hexadecimal and not 0, no node twice`,
		},
		"a short row": {rows: "0,0,1", err: "timeline.csv:2: wrong number of fields"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := timeline.ReadTimeline(strings.NewReader(timelineHeader+"\n"+tc.rows), "timeline.csv")
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error is\n%v, want\n%s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadTimelineOfAnotherFile(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"empty":        {"", "f.csv: is empty; want the columns " + timelineHeader},
		"other header": {"job,end\n0,moved\n", `f.csv:1: lacks the column "start_s"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := timeline.ReadTimeline(strings.NewReader(tc.text), "f.csv"); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error is %v, want %s", err, tc.want)
			}
		})
	}
	// Columns that a later version added are left alone, wherever they stand.
	text := "new," + timelineHeader + "\nx,0,0,1,t4,1,1,a:1,,,moved\n"
	if stays, err := timeline.ReadTimeline(strings.NewReader(text), "f.csv"); err != nil || len(stays) != 1 || stays[0].Seats[0].Node != "a" {
		t.Errorf("%+v, %v", stays, err)
	}
}

// What the reader accepts makes sense, and it accepts or refuses everything.
func FuzzReadTimeline(f *testing.F) {
	f.Add(timelineHeader + "\n0,10,20,t4,1,1,a:1,16,1,resized\n")
	f.Add(timelineHeader + "\n0,20,30,t4+v100,2,2,\"a,b:2+b:4\",,,moved\n")
	f.Add("job\n")
	f.Fuzz(func(t *testing.T, text string) {
		stays, err := timeline.ReadTimeline(strings.NewReader(text), "timeline.csv")
		if err != nil {
			return
		}
		for _, s := range stays {
			if s.Job < 0 || !(s.Start <= s.End) || s.Replicas() < 1 || len(s.Seats) < 1 || s.How > timeline.Unfinished || s.BatchPerDevice < 0 {
				t.Errorf("accepts %+v", s)
			}
		}
	})
}
