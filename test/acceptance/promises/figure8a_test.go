package promises_test

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// Figure 8a through the simulator: the part of the 195 deadlines that is met, against the published one, and for how many jobs the verdict is that of the
// artifact's log. The verdict on a job is whether it ends by its deadline; one that is declined does not. ElasticFlow as shipped counts what changes cost, which
// the published ratio leaves out, and decides otherwise than the artifact: it meets more. EDF has all of them. Tiresias, of which neither thresholds nor the order inside a queue are
// published, has 173, or 88.7 %, where 95 % were asked: that is missed. Other thresholds and another order have 181, or 92.8 %, which misses as well,
// and their ratio lies further from the published one.
func TestFigure8aVerdicts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, answers string
		sets            []string
		published       float64 // NaN where it counts otherwise
		ratio           float64 // ours
		same            int     // verdicts
	}{
		"edf":         {"edf", "edf.csv", nil, 0.118, 0.118, 195},
		"elasticflow": {"elasticflow", "ef-accessctrl.csv", nil, math.NaN(), 0.862, 154},
		"tiresias":    {"tiresias", "dlas-gpu.csv", nil, 0.287, 0.297, 173},
		"tiresias, two thresholds in the order of submission": {
			"tiresias", "dlas-gpu.csv", []string{"pipeline.allocation.config.thresholds=[3600, 7200]", "pipeline.allocation.config.inside=fifo"}, 0.287, 0.267, 181,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := os.Open(refdata.Path(t, "reference", "elasticflow-asplos23", tc.answers))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			rows, err := csv.NewReader(in).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			met := map[string]bool{}
			for _, row := range rows[1:] {
				number := func(name string) float64 {
					x, err := strconv.ParseFloat(row[slices.Index(rows[0], name)], 64)
					if err != nil {
						t.Fatal(err)
					}
					return x
				}
				met[row[slices.Index(rows[0], "job_id")]] = number("end_time") <= number("ddl")
			}
			c, err := quartet.Load(quartet.Builtins(), configs.Options{
				Files: []string{"papers/elasticflow-asplos23/" + tc.config + ".yaml"}, Env: os.LookupEnv, Sets: append(tc.sets, "output.write=[]"),
			})
			if err != nil {
				t.Fatal(err)
			}
			result := doortest.Simulate(t, c)
			same := 0
			for _, j := range result.Jobs {
				ours := j.Outcome == "completed" && float64(j.JCTSeconds) <= j.DeadlineSeconds*(1+1e-9)
				if ours == met[j.Name] {
					same++
				}
			}
			ratio := float64(result.Summary.Deadlines.Ratio)
			t.Logf("%d of %d verdicts are those of the artifact; a ratio of %.3f, published %.3f", same, len(result.Jobs), ratio, tc.published)
			if math.Abs(ratio-tc.ratio) > 5e-4 || tc.sets == nil && math.Abs(ratio-tc.published) > 0.02 || same != tc.same || len(result.Jobs) != 195 {
				t.Errorf("ratio %.3f and %d equal verdicts of %d, want %v and %d of 195; the published %v within 0.02", ratio, same, len(result.Jobs), tc.ratio, tc.same, tc.published)
			}
		})
	}
}
