package core_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func amounts(cpus, memory float64) core.Resources {
	return core.Resources{CPUs: cpus, MemoryGB: memory}
}

func sensitive() *core.Sensitivity {
	return &core.Sensitivity{
		IterationSeconds: 0.5, Base: amounts(2, 10), Ideal: amounts(8, 20), Speedup: 3,
		CPUs: []float64{1, 2, 8}, MemoryGB: []float64{5, 10, 20},
		Speeds: [][]float64{{0.2, 0.5, 0.5}, {0.5, 1, 1}, {0.5, 2, 3}},
	}
}

func TestSpeedMeasured(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		each  core.Resources
		want  float64
		table float64 // as the table has it, without what is below
	}{
		"measured":            {amounts(2, 10), 1, 1},
		"between":             {amounts(7, 19), 1, 1},
		"above":               {amounts(99, 99), 3, 3},
		"memory holds it up":  {amounts(8, 12), 2, 2},
		"half the least CPUs": {amounts(0.5, 10), 0.25, 0},
		"too little memory":   {amounts(2, 4), 0.4, 0},
		"less by rounding":    {amounts(7.9995, 20), 3, 1},
		"nothing":             {amounts(0, 0), 0, 0},
	} {
		if got := sensitive().Speed(tc.each); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: speed %v, want %v", name, got, tc.want)
		}
		if got := sensitive().At(tc.each); got != tc.table {
			t.Errorf("%s: at %v, want %v", name, got, tc.table)
		}
	}
}

func TestSpeedOnTheLine(t *testing.T) {
	t.Parallel()
	line, memory, modest := sensitive(), sensitive(), sensitive()
	line.Speeds, memory.Speeds, modest.Speeds = nil, nil, nil
	memory.Ideal = amounts(1, 20)
	modest.Ideal, modest.Speedup = amounts(1, 5), 1
	same, none := sensitive(), sensitive()
	none.Speeds, none.Ideal, none.Speedup = nil, none.Base, 2
	same.Speeds, same.Ideal = nil, amounts(2, 20)
	for name, tc := range map[string]struct {
		of   *core.Sensitivity
		each core.Resources
		want float64
	}{
		"the base":                               {line, amounts(2, 10), 1},
		"the ideal":                              {line, amounts(8, 20), 3},
		"the ideal less by rounding":             {line, amounts(7.9995, 20), 3},
		"a third of the way":                     {line, amounts(4, 10), 1 + 2.0/3},
		"all of it, where the ideal is the base": {none, amounts(2, 5), 1},
		"memory, where CPUs are the same":        {same, amounts(2, 15), 2},
		"half way":                               {line, amounts(5, 20), 2},
		"less by rounding":                       {line, amounts(1.9995, 10), 1},
		"of CPUs enough, memory costs nothing":   {line, amounts(8, 10), 3},
		"less than the base":                     {line, amounts(1, 10), 0.5},
		"less memory than the base":              {line, amounts(8, 5), 1.5},
		"twice the ideal":                        {line, amounts(16, 40), 3},
		"memory, where CPUs do not matter":       {memory, amounts(1, 15), 2},
		"an ideal below the base":                {modest, amounts(1, 5), 1},
		"less than an ideal below the base":      {modest, amounts(1, 2.5), 0.5},
	} {
		if got := tc.of.Speed(tc.each); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// More of anything never makes a job slower, and nobody is faster than at best.
func TestMoreIsNeverSlower(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		of := sensitive()
		if rapid.Bool().Draw(t, "only the ideal") {
			of.Speeds = nil
		}
		x := rapid.Float64Range(0, 30)
		less := amounts(x.Draw(t, "CPUs"), x.Draw(t, "memory"))
		more := less.Plus(amounts(x.Draw(t, "more CPUs"), x.Draw(t, "more memory")))
		if a, b := of.Speed(less), of.Speed(more); a > b || b > 3 || a < 0 {
			t.Fatalf("%v is %v fast, and %v is %v fast", less, a, more, b)
		}
	})
}

func TestSensitivityMemory(t *testing.T) {
	t.Parallel()
	flat, unknown := sensitive(), sensitive()
	flat.Speeds[2] = []float64{3, 3, 3}
	unknown.Speeds = nil
	fewest, below := sensitive(), sensitive()
	fewest.Ideal.CPUs, below.Ideal.CPUs = 1, 0.5
	for name, tc := range map[string]struct {
		of          *core.Sensitivity
		floor, want float64
	}{
		"the least of the best speed":    {sensitive(), 4, 20},
		"insensitive":                    {flat, 0, 5},
		"insensitive, and a floor given": {flat, 4, 4},
		"no speeds":                      {unknown, 4, 20},
		"an ideal of the fewest CPUs":    {fewest, 4, 10},
		"an ideal of fewer CPUs yet":     {below, 4, 20},
	} {
		if got := tc.of.Memory(tc.floor); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestSensitivityCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*core.Sensitivity)
		want   string // empty for none
	}{
		"sound":                {func(*core.Sensitivity) {}, ""},
		"seconds":              {func(s *core.Sensitivity) { s.IterationSeconds = 0 }, ""},
		"an iteration below 0": {func(s *core.Sensitivity) { s.IterationSeconds = -1 }, "iteration is -1"},
		"no base":              {func(s *core.Sensitivity) { s.Base.CPUs = 0 }, "CPUs of the base is 0"},
		"no ideal memory":      {func(s *core.Sensitivity) { s.Ideal.MemoryGB = math.NaN() }, "ideal memory is NaN"},
		"no speed-up":          {func(s *core.Sensitivity) { s.Speedup = math.Inf(1) }, "speed-up is +Inf"},
		"slower than the base": {func(s *core.Sensitivity) { s.Speedup = 0.99 }, "speed-up is 0.99, want a number of 1 or more"},
		"a speed-up of NaN":    {func(s *core.Sensitivity) { s.Speedup = math.NaN() }, "speed-up is NaN"},
		"faster with no more":  {func(s *core.Sensitivity) { s.Ideal, s.Speedup = s.Base, 1.01 }, "speed-up is 1.01, want 1, for the ideal is no more than the base"},
		"as fast with no more": {func(s *core.Sensitivity) { s.Ideal, s.Speedup = s.Base, 1 }, ""},
		"as fast with less":    {func(s *core.Sensitivity) { s.Ideal, s.Speedup = s.Base.Times(0.5), 1 }, ""},
		"faster with memory alone": {func(s *core.Sensitivity) {
			s.Ideal, s.Speedup = core.Resources{CPUs: s.Base.CPUs, MemoryGB: s.Base.MemoryGB + 1}, 1.01
		}, ""},
		"an amount twice":       {func(s *core.Sensitivity) { s.CPUs[1] = s.CPUs[0] }, "do not ascend"},
		"an amount of NaN":      {func(s *core.Sensitivity) { s.MemoryGB[1] = math.NaN() }, "measured amount is NaN"},
		"speeds of nothing":     {func(s *core.Sensitivity) { s.CPUs, s.MemoryGB, s.Speeds = nil, nil, [][]float64{} }, "there are speeds, want the amounts"},
		"slower with CPUs":      {func(s *core.Sensitivity) { s.Speeds[1][1] = s.Speeds[0][1] / 2 }, "with fewer CPUs, want no less"},
		"slower with memory":    {func(s *core.Sensitivity) { s.Speeds[0][1] = s.Speeds[0][0] / 2 }, "with less memory, want no less"},
		"as fast with CPUs":     {func(s *core.Sensitivity) { s.Speeds[1] = s.Speeds[0] }, ""},
		"not ascending":         {func(s *core.Sensitivity) { s.CPUs[0] = 3 }, "do not ascend"},
		"an amount of 0":        {func(s *core.Sensitivity) { s.CPUs[0] = 0 }, "measured amount is 0"},
		"a short row":           {func(s *core.Sensitivity) { s.Speeds[1] = s.Speeds[1][:2] }, "row 1 of the speeds"},
		"rows missing":          {func(s *core.Sensitivity) { s.Speeds = s.Speeds[:2] }, "there are 2 rows"},
		"speed of 0":            {func(s *core.Sensitivity) { s.Speeds[0][0] = 0 }, "speed is 0"},
		"no memory of the base": {func(s *core.Sensitivity) { s.Base.MemoryGB = 0 }, "memory of the base is 0"},
		"no ideal CPUs":         {func(s *core.Sensitivity) { s.Ideal.CPUs = -2 }, "ideal CPUs is -2"},
	} {
		of := sensitive()
		tc.change(of)
		err := of.Check()
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestThousandths(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]float64{3: 3, 24.0 / 7: 3.428, 0.1 * 3: 0.3, 0.0004: 0, 62.5: 62.5} {
		if got := amounts(in, in).Thousandths(); got != amounts(want, want) {
			t.Errorf("%v becomes %v, want %v", in, got, want)
		}
	}
}
