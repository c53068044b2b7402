package sensitivity

import (
	"math"
	"strings"
	"testing"
)

func toy() *Table {
	return &Table{
		Model: "toy", IterationSeconds: 0.5, Ideal: Share{8, 10}, Speedup: 3,
		CPUs: []float64{1, 2, 8}, MemoryGB: []float64{5, 10, 20},
		Speed: [][]float64{{0.2, 0.5, 0.5}, {0.5, 1, 1}, {0.5, 2, 3}},
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		share Share
		want  float64
	}{
		"measured":           {Share{2, 10}, 1},
		"between":            {Share{7, 19}, 1},
		"above":              {Share{99, 99}, 3},
		"too few CPUs":       {Share{0.5, 10}, 0},
		"too little memory":  {Share{2, 4}, 0},
		"memory holds it up": {Share{8, 12}, 2},
	} {
		if got := toy().At(tc.share); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	flat, unknown := toy(), toy()
	flat.Speed[2] = []float64{3, 3, 3}
	unknown.Speed = nil
	for name, tc := range map[string]struct {
		table       *Table
		floor, want float64
	}{
		"the least of the best speed":    {toy(), 4, 20},
		"insensitive":                    {flat, 0, 5},
		"insensitive, and a floor given": {flat, 4, 4},
		"no speeds":                      {unknown, 4, 10},
	} {
		if got := tc.table.Memory(tc.floor); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// On servers of four devices with 2 CPUs and 10 GB for each.
func TestDemand(t *testing.T) {
	t.Parallel()
	small := toy()
	small.Ideal.CPUs, small.Speedup = 1, 1
	for name, tc := range map[string]struct {
		table   *Table
		devices int
		memory  float64
		want    Demand
	}{
		"fits":                               {toy(), 1, 20, Demand{Share{8, 20}, 3}},
		"less than proportional":             {small, 3, 5, Demand{Share{3, 15}, 1}},
		"more CPUs than a server":            {toy(), 2, 10, Demand{Share{8, 20}, 1 + 2*4.0/12}},
		"as many devices as a server":        {toy(), 4, 10, Demand{Share{8, 40}, 1}},
		"more memory than a server":          {small, 3, 20, Demand{Share{3, 40}, 1}},
		"larger than a server: proportional": {toy(), 5, 20, Demand{Share{10, 50}, 1}},
	} {
		got := tc.table.Demand(tc.devices, 4, Share{2, 10}, tc.memory)
		if got.Share != tc.want.Share || math.Abs(got.Speed-tc.want.Speed) > 1e-12 {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Table)
		want   string // empty for none
	}{
		"sound":         {func(*Table) {}, ""},
		"no iteration":  {func(t *Table) { t.IterationSeconds = 0 }, "iteration of model"},
		"not ascending": {func(t *Table) { t.CPUs[0] = 3 }, "do not ascend"},
		"a short row":   {func(t *Table) { t.Speed[1] = t.Speed[1][:2] }, "row 1 of the speeds"},
		"rows missing":  {func(t *Table) { t.Speed = t.Speed[:2] }, "has 2 rows"},
		"speed of 0":    {func(t *Table) { t.Speed[0][0] = 0 }, "speed of model"},
	} {
		table := toy()
		tc.change(table)
		err := table.Check()
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
