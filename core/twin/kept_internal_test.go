package twin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// What a forecaster knows of how bands held is the same after it was kept, what is still open as well.
func TestWhatIsKeptIsTheSame(t *testing.T) {
	v := &core.View{IntervalSeconds: 60}
	was := NewForecaster(1)
	for at := range 30 {
		f := &Forecast{AtSeconds: float64(60 * at)}
		for id := range core.JobID(3) {
			end := f.AtSeconds + 1000*float64(id+1)
			f.Jobs = append(f.Jobs, JobForecast{ID: id, Running: id == 0, rawStart: Band{end - 500, end - 400, end - 100}, rawEnd: Band{end - 300, end, end + 900}})
		}
		was.show(f, v)
	}
	was.starts.resolve(1, was.open[1].starts, 2000)
	was.open[1].starts = was.open[1].starts[:0]
	was.ends.resolve(0, was.open[0].ends, 2500)
	delete(was.open, 0)
	text, err := was.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	is := NewForecaster(1)
	if err := is.Restore(text); err != nil {
		t.Fatal(err)
	}
	same := cmp.Options{cmp.AllowUnexported(scale{}, score{}, openForecasts{}, shown{}), cmpopts.EquateEmpty()}
	for of, pair := range map[string][2]any{"starts": {was.starts, is.starts}, "ends": {was.ends, is.ends}, "open": {was.open, is.open}} {
		if diff := cmp.Diff(pair[0], pair[1], same); diff != "" {
			t.Errorf("%s (-was +is):\n%s", of, diff)
		}
	}
	if len(is.open) == 0 || is.ends.resolved == 0 || len(is.starts.scores) == 0 {
		t.Errorf("%d are open, %d ends are resolved, %d scores of starts", len(is.open), is.ends.resolved, len(is.starts.scores))
	}
}
