package stats_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/stats"
)

var (
	update = flag.Bool("update", false, "write the tables of docs/results/statistics.md anew")
	full   = flag.Bool("full", false, "hold all tables of docs/results/statistics.md to what is measured, which takes minutes")
)

// studies is how many studies with known truth each figure is of: its standard error is half a per cent at 95 %.
const studies = 2000

// A population is what a study draws its differences from; their true mean is 0.
type population struct {
	name string
	draw func(*rand.Rand) float64
}

var populations = []population{
	{"normal", (*rand.Rand).NormFloat64},
	{"log-normal, σ = 0.5", logNormal(0.5)},
	{"log-normal, σ = 1", logNormal(1)},
	{"heavy-tailed: t, 3 degrees of freedom", func(r *rand.Rand) float64 {
		a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
		return r.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3)
	}},
	{"mixed: 80 % N(-0.4, 1), 20 % N(1.6, 3)", func(r *rand.Rand) float64 {
		if r.Float64() < 0.8 {
			return r.NormFloat64() - 0.4
		}
		return 3*r.NormFloat64() + 1.6
	}},
}

func logNormal(sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Exp(sigma*r.NormFloat64()) - math.Exp(sigma*sigma/2) }
}

// share tells counts as percentages of the studies in cells of a table.
func share(of int, counts ...int) string {
	var row strings.Builder
	for _, c := range counts {
		fmt.Fprintf(&row, " %.1f |", 100*float64(c)/float64(of))
	}
	return row.String() + "\n"
}

// How often do the intervals hold the truth?
func coverageOf(n int) string {
	table := "| differences | t | BCa | expanded BCa | percentile | bootstrap-t |\n|---|---|---|---|---|---|\n"
	for _, p := range populations {
		var held [5]int
		for s := range studies {
			random := rand.New(rand.NewPCG(uint64(s), uint64(n)))
			x := make([]float64, n)
			for i := range x {
				x[i] = p.draw(random)
			}
			b := stats.BCa(x, 0.95)
			for k, i := range []stats.Interval{stats.T(x, 0.95), b.BCa, b.Expanded, b.Percentile, stats.Studentized(x, 0.95)} {
				if i.Contains(0) {
					held[k]++
				}
			}
		}
		table += "| " + p.name + " |" + share(studies, held[:]...)
	}
	return table
}

// How often does a family of comparisons without any difference have one that is significant?
func falsePositives() string {
	const families = 5 * studies // they are quick, and the question is one of half a point
	table := "| differences | workloads | 1 | 5 | 20 | 20 without Holm |\n|---|---|---|---|---|---|\n"
	for _, p := range []population{populations[0], populations[3]} { // those that are symmetric, as the test supposes
		for _, n := range []int{8, 12, 20} {
			var found [4]int
			for s := range families {
				random := rand.New(rand.NewPCG(uint64(s), uint64(n)))
				values := make([]float64, 20)
				for c := range values {
					d := make([]float64, n)
					for i := range d {
						d[i] = p.draw(random)
					}
					values[c], _ = stats.Wilcoxon(d)
				}
				for k, adjusted := range [][]float64{stats.Holm(values[:1]), stats.Holm(values[:5]), stats.Holm(values), values} {
					for _, v := range adjusted {
						if v <= 0.05 {
							found[k]++
							break
						}
					}
				}
			}
			table += fmt.Sprintf("| %s | %d |", p.name, n) + share(families, found[:]...)
		}
	}
	return table
}

// How often does the interval within one trace hold the truth, where jobs depend on those before them?
func coverageWithin() string {
	const n, traces = 2000, 500
	table := "| autocorrelation of the queue | n^(1/3) jobs: percentile | expanded | length chosen: percentile | expanded | mean length |\n|---|---|---|---|---|---|\n"
	for _, phi := range []float64{0, 0.5, 0.9} {
		var held [4]int
		var length float64
		for s := range traces {
			random := rand.New(rand.NewPCG(uint64(s), n))
			step := math.Sqrt(1 - phi*phi)
			a, b := make([]float64, n), make([]float64, n)
			both, one := random.NormFloat64(), random.NormFloat64() // the state of the queue: what the schedulers share, and do not
			for i := range n {
				both, one = phi*both+step*random.NormFloat64(), phi*one+step*random.NormFloat64()
				a[i], b[i] = math.Max(0, 100+15*both), math.Max(0, 100+10*both+10*one)
			}
			for k, block := range []int{stats.Blocks(n), 0} {
				p, err := stats.CompareWithin(a, b, block, 0.95)
				if err != nil {
					panic(err)
				}
				if p.Percentile.Contains(0) {
					held[2*k]++
				}
				if p.Expanded.Contains(0) {
					held[2*k+1]++
				}
				if block == 0 {
					length += float64(p.Block) / traces
				}
			}
		}
		row := share(traces, held[:]...)
		table += fmt.Sprintf("| %.1f |%s %.0f |\n", phi, strings.TrimSuffix(row, "\n"), length)
	}
	return table
}

// How often does the last interval of a study hold the truth that adds workloads until its interval is narrow enough?
func coverageOfLooks() string {
	looks := []int{10, 20, 30, 40}
	levels := stats.Looks(len(looks), 0.95)
	table := "| differences | target half-width, in σ | with the levels of the looks | with 95 % at each look | mean workloads | reach the target |\n|---|---|---|---|---|---|\n"
	for _, p := range []population{populations[0], populations[1], populations[3]} {
		deviation := map[string]float64{"n": 1, "l": math.Sqrt((math.Exp(0.25) - 1) * math.Exp(0.25)), "h": math.Sqrt(3)}[p.name[:1]]
		for _, target := range []float64{0.4, 0.6} {
			var held [2]int
			var used float64
			reached := 0
			for s := range studies {
				random := rand.New(rand.NewPCG(uint64(s), 40))
				x := make([]float64, looks[len(looks)-1])
				for i := range x {
					x[i] = p.draw(random)
				}
				for k := range held {
					for look, n := range looks {
						level := levels[look]
						if k == 1 {
							level = 0.95
						}
						interval := stats.T(x[:n], level)
						narrow := interval.Width()/2 <= target*deviation
						if !narrow && look < len(looks)-1 {
							continue
						}
						if interval.Contains(0) {
							held[k]++
						}
						if k == 0 {
							used += float64(n) / studies
						}
						if k == 0 && narrow {
							reached++
						}
						break
					}
				}
			}
			row := strings.TrimSuffix(share(studies, held[:]...), "\n")
			table += fmt.Sprintf("| %s | %.1f |%s %.1f |%s", p.name, target, row, used, share(studies, reached))
		}
	}
	return table
}

// The tables of the document are what is measured. Those that take long are measured by -full and -update only.
func TestMeasured(t *testing.T) {
	const document = "../../docs/results/statistics.md"
	for _, table := range []struct {
		name  string
		slow  bool
		write func() string
	}{
		{"coverage-5", false, func() string { return coverageOf(5) }},
		{"coverage-8", true, func() string { return coverageOf(8) }},
		{"coverage-20", true, func() string { return coverageOf(20) }},
		{"false-positives", true, falsePositives},
		{"within", true, coverageWithin},
		{"looks", false, coverageOfLooks},
	} {
		t.Run(table.name, func(t *testing.T) {
			if (table.slow || testing.Short()) && !*full && !*update {
				t.Skip("takes minutes: go test ./core/stats -run Measured -full, which make slow does")
			}
			text, err := os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			place := regexp.MustCompile(`(?s)<!-- measured ` + table.name + ` -->\n(.*?)<!-- end -->`)
			at := place.FindSubmatchIndex(text)
			if at == nil {
				t.Fatalf("%s has no place for %s", document, table.name)
			}
			got := table.write()
			if *update {
				text = append(append(append([]byte(nil), text[:at[2]]...), got...), text[at[3]:]...)
				if err := os.WriteFile(document, text, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text[at[2]:at[3]]), got); diff != "" {
				t.Errorf("%s (-want +got), written anew by -update:\n%s", document, diff)
			}
		})
	}
}
