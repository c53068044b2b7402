package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// searched is a run of two trials of a search, one of which went back to a checkpoint, and a job of none.
func searched() fstest.MapFS {
	header := strings.TrimSuffix(jobsHeader, "\n") + ",experiment\n"
	return files(map[string]string{
		"jobs.csv": header + "0,a,,0,0,9,9,0,1,0,9,completed,sweep\n1,b,,0,0,9,9,0,1,0,9,completed,sweep\n2,c,,0,0,9,9,0,1,0,9,completed,\n",
		"reports.csv": "job,at_s,metric,step,value\n0,1,loss,1,3\n1,1,loss,1,4\n2,1,loss,1,5\n0,2,loss,2,1\n0,3,loss,3,2\n1,3,accuracy,1,0.25\n0,4,loss,2,2.5\n" +
			"7,4,loss,2,2.5\n0,5,,2,2.5\n",
	})
}

// A page has what trials reported, by experiment and metric, and what each job did.
func TestPageOfASearch(t *testing.T) {
	r, page := pageOf(t, searched())
	golden(t, "search.txt", shown(t, page))
	golden(t, "search-figures.txt", drawnText(slices.DeleteFunc(r.Figures(), func(f Figure) bool { return f.Place != "trials" })))
}

// Of many trials those that went furthest are drawn, and the title says so.
func TestFigureOfManyTrials(t *testing.T) {
	jobs, reports := strings.TrimSuffix(jobsHeader, "\n")+",experiment\n", "job,at_s,metric,step,value\n"
	for i := range 40 {
		jobs += fmt.Sprintf("%d,j%d,,0,0,9,9,0,1,0,9,completed,sweep\n", i, i)
		for step := range i + 1 {
			reports += fmt.Sprintf("%d,1,loss,%d,%d\n", i, step, i)
		}
	}
	r, _ := pageOf(t, files(map[string]string{"jobs.csv": jobs, "reports.csv": reports}))
	f := r.experimentFigures()
	if len(f) != 1 || len(f[0].Lines) != mostTrials || f[0].Lines[0].Label != "j39" || f[0].Title != "loss of sweep, the 12 of 40 trials that went furthest" {
		t.Errorf("figures %+v", f)
	}
}

// A file of reports that is broken is told, and what can be read of it is shown.
func TestBrokenReportsAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		told       int
	}{
		"no column":  {"job,at_s,step,value\n0,1,1,2\n", `reports.csv: there is no column "metric".`, 0},
		"no number":  {"job,at_s,metric,step,value\n0,1,loss,1,x\n0,1,loss,2,3\n", `reports.csv: row 2, value: "x" is no number.`, 1},
		"not a file": {"", "reports.csv cannot be read whole", 0},
	} {
		t.Run(name, func(t *testing.T) {
			all := searched()
			all["reports.csv"] = &fstest.MapFile{Data: []byte(tc.text)}
			r, _ := pageOf(t, all)
			if !slices.ContainsFunc(r.Problems, func(p string) bool { return strings.HasPrefix(p, tc.want) }) || len(r.reported) != tc.told {
				t.Errorf("%d series, problems %q, want %q", len(r.reported), r.Problems, tc.want)
			}
		})
	}
}
