package operate

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/control/controlv1"
)

func secs(low, median, high float64) *controlv1.Band {
	return &controlv1.Band{Low: finite(low), Median: finite(median), High: finite(high)}
}

// What the page lists is what jobs -o wide says, and without a forecast it is what it was before.
func TestUIForeseesAsJobsDo(t *testing.T) {
	waits := func(o *controlv1.Outlook) *controlv1.Job {
		return &controlv1.Job{Name: "a", State: "waiting", Reason: "waiting_for_devices", Outlook: o}
	}
	runs := func(o *controlv1.Outlook) *controlv1.Job {
		return &controlv1.Job{Name: "b", State: "running", Seats: []*controlv1.Seat{{Node: "n", Devices: []uint32{0, 1}}}, Outlook: o}
	}
	inf := math.Inf(1)
	const fresh, old = "Forecast by simulation. 80 % intervals.", "Forecast by simulation, made 3m 01s ago. 80 % intervals."
	for name, tc := range map[string]struct {
		jobs []*controlv1.Job
		now  float64
		want []string
		note string
	}{
		"no job": {now: 5},
		"no forecast of any, as by an earlier scheduler": {jobs: []*controlv1.Job{waits(nil), runs(nil)}, now: 5, want: []string{"", ""}},
		"start of one that waits, end of one that runs": {
			jobs: []*controlv1.Job{waits(&controlv1.Outlook{AtSeconds: 100, Start: secs(160, 200, 400), End: secs(500, 600, 900)}), runs(&controlv1.Outlook{AtSeconds: 100, End: secs(160, 200, 220)})},
			now:  100, want: []string{"start in 1m 00s to 5m 00s", "end in 1m 00s to 2m 00s"}, note: fresh,
		},
		"no upper end":              {jobs: []*controlv1.Job{runs(&controlv1.Outlook{AtSeconds: 100, End: secs(160, inf, inf)})}, now: 100, want: []string{"end in 1m 00s or later"}, note: fresh},
		"not within the future":     {jobs: []*controlv1.Job{waits(&controlv1.Outlook{AtSeconds: 100, Start: secs(inf, inf, inf), End: secs(inf, inf, inf)})}, now: 100, want: []string{"start unknown"}, note: fresh},
		"one that came since":       {jobs: []*controlv1.Job{waits(nil), runs(&controlv1.Outlook{End: secs(160, 200, 220)})}, now: 100, want: []string{"unknown", "end in 1m 00s to 2m 00s"}, note: fresh},
		"one that started since":    {jobs: []*controlv1.Job{runs(&controlv1.Outlook{Start: secs(90, 95, 99), End: secs(160, 200, 220)})}, now: 100, want: []string{"end in 1m 00s to 2m 00s"}, note: fresh},
		"one that was stopped":      {jobs: []*controlv1.Job{waits(&controlv1.Outlook{End: secs(160, 200, 220)})}, now: 100, want: []string{"end in 1m 00s to 2m 00s"}, note: fresh},
		"a band that is behind":     {jobs: []*controlv1.Job{runs(&controlv1.Outlook{AtSeconds: 100, End: secs(110, 120, 130)})}, now: 200, want: []string{"end by now"}, note: fresh},
		"a band that has begun":     {jobs: []*controlv1.Job{runs(&controlv1.Outlook{AtSeconds: 100, End: secs(110, 120, 260)})}, now: 200, want: []string{"end in 0 s to 1m 00s"}, note: fresh},
		"three minutes old":         {jobs: []*controlv1.Job{runs(&controlv1.Outlook{AtSeconds: 100, End: secs(310, 320, 340)})}, now: 280, want: []string{"end in 30.0 s to 1m 00s"}, note: fresh},
		"older than three minutes":  {jobs: []*controlv1.Job{runs(&controlv1.Outlook{AtSeconds: 100, End: secs(311, 320, 341)})}, now: 281, want: []string{"end in 30.0 s to 1m 00s"}, note: old},
		"one that has ended":        {jobs: []*controlv1.Job{{State: "completed"}, runs(&controlv1.Outlook{AtSeconds: 100, End: secs(160, 200, 220)})}, now: 100, want: []string{"", "end in 1m 00s to 2m 00s"}, note: fresh},
		"too wide to say anything":  {jobs: []*controlv1.Job{runs(&controlv1.Outlook{AtSeconds: 100, End: secs(174, 5000, 700000)})}, now: 100, want: []string{"end unknown"}, note: fresh},
		"wide, of a declared job":   {jobs: []*controlv1.Job{{State: "running", TotalWork: 5, Outlook: &controlv1.Outlook{AtSeconds: 100, End: secs(174, 5000, 700100)}}}, now: 100, want: []string{"end in 1m 14s to 8d 02h"}, note: fresh},
		"a clock that was set back": {jobs: []*controlv1.Job{runs(&controlv1.Outlook{AtSeconds: 100, End: secs(110, 120, 130)})}, now: 50, want: []string{"end in 1m 00s to 1m 20s"}, note: fresh},
	} {
		t.Run(name, func(t *testing.T) {
			s := stateOf(tc.jobs, nil, tc.now)
			var got []string
			for _, j := range s.Jobs {
				got = append(got, j[5].(string))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if s.Foresight != tc.note {
				t.Errorf("note %q, want %q", s.Foresight, tc.note)
			}
			more := moreColumns[*controlv1.Job]{}
			if expectedColumns(&more, tc.jobs, true, tc.now); len(more.columns) > 0 != (tc.note != "") {
				t.Errorf("jobs -o wide has %d columns", len(more.columns))
			}
			for i, j := range tc.jobs {
				if cells := more.cells(j); len(cells) > 0 && cells[0] != got[i] {
					t.Errorf("jobs -o wide says %q, the page %q", cells[0], got[i])
				}
			}
		})
	}
}

func TestUIShowsOfAJobWhatDescribeDoes(t *testing.T) {
	inf := math.Inf(1)
	const judged = "made 10.0 s ago. 80 % intervals; so far "
	for name, tc := range map[string]struct {
		job  *controlv1.Job
		want [][2]string
	}{
		"no forecast": {job: &controlv1.Job{State: "waiting"}},
		"one that waits": {
			job: &controlv1.Job{State: "waiting", Outlook: &controlv1.Outlook{
				AtSeconds: 90, Start: secs(160, 200, 400), End: secs(500, 600, inf), Position: 9, Ahead: []string{"</dd><b>", "b", "c", "d", "e", "f"}, Judged: 8, Held: 6,
			}},
			want: [][2]string{
				{"start", "expected in 1m 00s to 5m 00s"},
				{"position", "9, after </dd><b>, b, c, d, e and 3 more"},
				{"end", "expected in 6m 40s or later"},
				{"forecast", judged + "6 of 8 were right."},
			},
		},
		"the first": {
			job:  &controlv1.Job{State: "waiting", Outlook: &controlv1.Outlook{AtSeconds: 90, Start: secs(100, 100, 100), End: secs(inf, inf, inf), Position: 1}},
			want: [][2]string{{"start", "expected by now"}, {"position", "1"}, {"end", "unknown"}, {"forecast", "made 10.0 s ago. 80 % intervals; none could be checked yet."}},
		},
		"an interval that is too wide": {
			job: &controlv1.Job{State: "running", Outlook: &controlv1.Outlook{AtSeconds: 90, End: secs(174, 5000, 700000)}},
			want: [][2]string{
				{"end", "unknown (no earlier forecast could be checked, and the job declares no duration; set seconds: in the job file)"},
				{"forecast", "made 10.0 s ago. 80 % intervals; none could be checked yet."},
			},
		},
		"one that runs": {
			job:  &controlv1.Job{State: "running", Outlook: &controlv1.Outlook{AtSeconds: 90, End: secs(160, 200, 220), Judged: 5, Held: 5}},
			want: [][2]string{{"end", "expected in 1m 00s to 2m 00s"}, {"forecast", judged + "5 of 5 were right."}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			details := detailsOf(&controlv1.DescribeResponse{Job: tc.job, NowSeconds: 100})
			got := slices.DeleteFunc(details.Facts, func(f [2]string) bool {
				return !slices.Contains([]string{"start", "position", "end", "forecast"}, f[0])
			})
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("empty", func(l [][2]string) [][2]string { return append([][2]string{}, l...) })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
