package market

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// like is a problem of jobs alike, on workers of one type.
func like(jobs, workers, least, most int) *problem {
	in := make([]Job, jobs)
	for i := range in {
		in[i] = Job{Iterations: float64(i + 1), Batch: 1, Rates: []float64{1}, Least: least, Most: most}
	}
	p, err := newProblem(in, Workers{Count: []int{workers}})
	if err != nil {
		panic(err)
	}
	p.admit()
	return p
}

// Of 3 jobs on 7 workers there are C(7,3) = 35 categories, idle workers counted, and all are drawn equally often: the
// chi-square statistic of 34 degrees of freedom exceeds 66 once in a thousand seeds.
func TestDrawsAreUniform(t *testing.T) {
	const draws = 35_000
	sampler, rng := like(3, 7, 1, 0).newSampler(), rand.New(rand.NewPCG(1, 1))
	seen := map[string]int{}
	sizes := make([]int, 3)
	for range draws {
		sampler.draw(rng, sizes)
		seen[fmt.Sprint(sizes)]++
	}
	if len(seen) != 35 {
		t.Errorf("%d categories drawn, want 35", len(seen))
	}
	chi := 0.0
	for _, n := range seen {
		chi += float64((n-draws/35)*(n-draws/35)) / (draws / 35)
	}
	if chi > 66 {
		t.Errorf("chi-square %v, want at most 66", chi)
	}
}

// With limits the categories drawn are all within them, and all of those are drawn.
func TestDrawsKeepLimits(t *testing.T) {
	sampler, rng := like(3, 8, 2, 3).newSampler(), rand.New(rand.NewPCG(1, 1))
	seen := map[string]bool{}
	sizes := make([]int, 3)
	for range 2000 {
		sampler.draw(rng, sizes)
		seen[fmt.Sprint(sizes)] = true
		for _, n := range sizes {
			if n < 2 || n > 3 {
				t.Fatalf("sizes %v, want 2 to 3", sizes)
			}
		}
	}
	if len(seen) != 7 { // all of two and three but three threes
		t.Errorf("%d categories drawn, want 7: %v", len(seen), seen)
	}
}

// Categories give every job what its limits allow, and all together no more than there is.
func TestCategoriesKeepLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 6, 4, 5)
		p, err := newProblem(in.jobs, in.workers)
		if err != nil {
			t.Fatal(err)
		}
		p.admit()
		if len(p.agents) == 0 {
			return
		}
		rng := rand.New(rand.NewPCG(1, 1))
		near, drawn := p.base(), make([]int, len(p.agents))
		p.near(rng, near)
		p.newSampler().draw(rng, drawn)
		for name, sizes := range map[string][]int{"base": p.base(), "equal": p.equal(), "near": near, "drawn": drawn} {
			sum := 0
			for i, size := range sizes {
				sum += size
				if size < p.agents[i].least || size > p.agents[i].most {
					t.Errorf("%s: size %d of agent %d, want %d to %d", name, size, i, p.agents[i].least, p.agents[i].most)
				}
			}
			if sum > p.total {
				t.Errorf("%s: %v exceeds %d workers", name, sizes, p.total)
			}
		}
	})
}

func TestEqualSizes(t *testing.T) {
	cases := map[string]struct {
		p    *problem
		want []int
	}{
		"the rest goes to the first": {like(3, 8, 1, 0), []int{3, 3, 2}},
		"limits leave workers idle":  {like(3, 12, 1, 2), []int{2, 2, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.p.equal(); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("sizes %v, want %v", got, tc.want)
			}
		})
	}
}
