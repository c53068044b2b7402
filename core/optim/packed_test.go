package optim

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// packedOracle solves the problem of single jobs and pairs of them by the simplex method.
func packedOracle(t *rapid.T, p Packed, level Level) float64 {
	type job struct{ class, id int }
	var jobs []job
	for a, c := range p.Classes {
		for _, i := range c.Members {
			jobs = append(jobs, job{a, i})
		}
	}
	types, n := len(p.Capacity), len(jobs)
	var columns [][]float64 // a row for each type, the time of each job, the rate of each job
	add := func(on int, devices float64, of []int, rates ...float64) {
		column := make([]float64, types+2*n)
		column[on] = devices
		for k, i := range of {
			column[types+i] = 1
			column[types+n+i] = rates[k]
		}
		columns = append(columns, column)
	}
	for k, j := range jobs {
		for on, rate := range p.Classes[j.class].Rates {
			if rate > 0 {
				add(on, p.Classes[j.class].Devices, []int{k}, rate)
			}
		}
		for l := range k {
			o := jobs[l]
			for _, pair := range p.Pairs {
				if !p.runs(pair) {
					continue
				}
				if pair.First == o.class && pair.Second == j.class {
					add(pair.Type, p.Classes[j.class].Devices, []int{l, k}, pair.Rates[0], pair.Rates[1])
				}
				if pair.First == j.class && pair.Second == o.class && (j.class != o.class || pair.Rates[0] != pair.Rates[1]) {
					add(pair.Type, p.Classes[j.class].Devices, []int{k, l}, pair.Rates[0], pair.Rates[1])
				}
			}
		}
	}
	program := LinearProgram{Objective: make([]float64, len(columns)+1)}
	program.Objective[len(columns)] = 1
	for r := range types + 2*n {
		row := Row{Coefficients: make([]float64, len(columns)+1)}
		for c := range columns {
			row.Coefficients[c] = columns[c][r]
		}
		switch {
		case r < types:
			row.Bound = p.Capacity[r]
		case r < types+n:
			row.Bound = 1
		default:
			i := jobs[r-types-n].id
			row.Relation, row.Bound, row.Coefficients[len(columns)] = AtLeast, level.Floor[i], -level.Slope[i]
		}
		program.Rows = append(program.Rows, row)
	}
	r, err := SolveLinear(t.Context(), program)
	if err != nil || r.Outcome != Optimal {
		t.Fatal(r.Outcome, err)
	}
	return r.Value
}

func drawPacked(t *rapid.T, alike bool) (Packed, Level) {
	p := Packed{Capacity: rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 2, 3, 7.5}), 1, 3).Draw(t, "capacity")}
	var level Level
	rate := rapid.Custom(func(t *rapid.T) float64 {
		return rapid.SampledFrom([]float64{0, 0.1, 0.25, 0.5, 0.8, 1}).Draw(t, "rate")
	})
	for range rapid.IntRange(1, 4).Draw(t, "classes") {
		c := PackedClass{Devices: rapid.SampledFrom([]float64{1, 1, 2}).Draw(t, "devices")}
		for range p.Capacity {
			c.Rates = append(c.Rates, rate.Draw(t, "alone"))
		}
		slope := rapid.Float64Range(0.1, 2).Draw(t, "slope")
		for range rapid.IntRange(1, 3).Draw(t, "members") {
			c.Members = append(c.Members, len(level.Slope))
			if !alike {
				slope = rapid.Float64Range(0.1, 2).Draw(t, "slope")
			}
			level.Slope, level.Floor = append(level.Slope, slope), append(level.Floor, 0)
		}
		p.Classes = append(p.Classes, c)
	}
	for a := range p.Classes {
		for b := a; b < len(p.Classes); b++ {
			for on := range p.Capacity {
				if p.Classes[a].Devices == p.Classes[b].Devices && rapid.Bool().Draw(t, "pairs") {
					pair := PackedPair{First: a, Second: b, Type: on, Rates: [2]float64{rate.Draw(t, "first"), rate.Draw(t, "second")}}
					if a == b {
						pair.Rates[1] = pair.Rates[0]
					}
					p.Pairs = append(p.Pairs, pair)
				}
			}
		}
	}
	return p, level
}

// checkPacked holds shares to the cluster, and jobs to a level.
func checkPacked(t *rapid.T, p Packed, r PackedResult, reach func(i int, rate float64) bool) {
	t.Helper()
	const slack = 1e-5
	class := map[int]int{}
	for a, c := range p.Classes {
		for _, i := range c.Members {
			class[i] = a
		}
	}
	used, time, rates := make([]float64, len(p.Capacity)), make([]float64, len(class)), make([]float64, len(class))
	for i, shares := range r.Exclusive {
		c := &p.Classes[class[i]]
		for j, x := range shares {
			if x < 0 || x > 0 && c.Rates[j] == 0 {
				t.Fatalf("job %d spends %v alone on type %d", i, x, j)
			}
			used[j] += x * c.Devices
			time[i] += x
			rates[i] += x * c.Rates[j]
		}
	}
	for _, s := range r.Pairs {
		i, k := s.Jobs[0], s.Jobs[1]
		if i >= k || s.Share < 0 {
			t.Fatalf("a share %+v", s)
		}
		used[s.Type] += s.Share * p.Classes[class[i]].Devices
		found := false
		for _, pair := range p.Pairs {
			if pair.Type != s.Type {
				continue
			}
			swap := pair.First == class[k] && pair.Second == class[i] && class[i] != class[k]
			if !swap && (pair.First != class[i] || pair.Second != class[k]) {
				continue
			}
			found = true
			first, second := pair.Rates[0], pair.Rates[1]
			if swap {
				first, second = second, first
			}
			time[i], time[k] = time[i]+s.Share, time[k]+s.Share
			rates[i], rates[k] = rates[i]+s.Share*first, rates[k]+s.Share*second
		}
		if !found {
			t.Fatalf("%+v is of no pair", s)
		}
	}
	for j, u := range used {
		if u > p.Capacity[j]+slack {
			t.Fatalf("%v of %v devices of type %d are used", u, p.Capacity[j], j)
		}
	}
	for i := range time {
		if time[i] > 1+slack {
			t.Fatalf("job %d runs for %v of the time", i, time[i])
		}
		if !reach(i, rates[i]+slack) {
			t.Fatalf("job %d has rate %v, at level %v", i, rates[i], r.Level)
		}
	}
}

func TestPackedMaxMin(t *testing.T) {
	for name, alike := range map[string]bool{"members alike": true, "members unlike": false} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p, level := drawPacked(t, alike)
				r, err := new(PackedSolver).MaxMin(t.Context(), p, level, rapid.Bool().Draw(t, "even"))
				if err != nil {
					t.Fatal(err)
				}
				want := packedOracle(t, p, level)
				if math.Abs(r.Level-want) > 1e-6*(1+want) || r.Bound < want-1e-6*(1+want) || r.Bound > want+1e-6*(1+want) {
					t.Fatalf("level %v, bound %v, want %v", r.Level, r.Bound, want)
				}
				checkPacked(t, p, r, func(i int, rate float64) bool { return rate >= level.Floor[i]+level.Slope[i]*r.Level })
			})
		})
	}
}

func TestPackedFinishTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, level := drawPacked(t, false)
		for a := range p.Classes {
			p.Classes[a].Rates[0] = max(p.Classes[a].Rates[0], 0.1)
		}
		p.Capacity[0] = max(p.Capacity[0], 1)
		var finish Finish
		for range level.Slope {
			finish.Elapsed = append(finish.Elapsed, drawAmount(0).Draw(t, "elapsed"))
			finish.Remaining = append(finish.Remaining, drawAmount(0).Draw(t, "remaining"))
			finish.Exclusive = append(finish.Exclusive, rapid.Float64Range(1, 20).Draw(t, "alone"))
		}
		r, err := new(PackedSolver).FinishTimes(t.Context(), p, finish, false)
		if err != nil {
			t.Fatal(err)
		}
		checkPacked(t, p, r, func(i int, rate float64) bool { return finish.ratio(i, rate*(1+1e-3)) <= -r.Level*(1+1e-3) })
		if r.Level > r.Bound {
			t.Fatalf("level %v is above its bound %v", r.Level, r.Bound)
		}
		// The demands of a slightly lower ratio are more than the cluster can do: at them a level of 1 is not reached.
		asked := Level{Floor: make([]float64, len(level.Slope)), Slope: make([]float64, len(level.Slope))}
		most := 0.0
		for a, c := range p.Classes {
			for _, i := range c.Members {
				if finish.ratio(i, p.fastest(a)) > -r.Level*(1-1e-3) {
					return // it cannot have less
				}
				asked.Slope[i], _ = finish.at(i, -r.Level*(1-1e-3))
				most = max(most, asked.Slope[i])
			}
		}
		if most > 0 && packedOracle(t, p, asked) > 1+1e-6 {
			t.Fatalf("a ratio below %v can be met", -r.Level)
		}
	})
}

// drawAmount draws 0, or a number of which others are no more than a hundred thousand times.
func drawAmount(from float64) *rapid.Generator[float64] {
	return rapid.Custom(func(t *rapid.T) float64 {
		if x := rapid.Float64Range(from, 10).Draw(t, "amount"); x > 1e-4 {
			return x
		}
		return 0
	})
}

// Jobs that are all as fast, on one device: the worst ratio is that at which the device is just full. Newton's steps once went beyond it, and the division at
// it was not exact.
func TestPackedFinishTimesOnOneDevice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		classes   []PackedClass
		elapsed   []float64
		remaining []float64
		alone     []float64
	}{
		"gangs of two": {
			[]PackedClass{{Devices: 2, Members: []int{0, 1, 2}}, {Devices: 1, Members: []int{3, 4}}, {Devices: 2, Members: []int{5, 6, 7}}, {Devices: 1, Members: []int{8}}},
			[]float64{1, 1, 1, 1, 1, 1, 1, 1.875, 1},
			[]float64{1, 1, 1, 1, 0.125, 1, 1, 2.9375, 0.03125},
			[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1},
		},
		"one that needs little": {
			[]PackedClass{{Devices: 1, Members: []int{0, 1, 2}}, {Devices: 1, Members: []int{3, 4}}, {Devices: 2, Members: []int{5}}, {Devices: 1, Members: []int{6}}},
			[]float64{1, 1, 1, 1, 1, 1, 1},
			[]float64{1, 1, 1, 1, 1, 0.125, 0.0001220703125},
			[]float64{1, 1, 1, 1, 2, 1, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rate = 0.1
			p := Packed{Capacity: []float64{1}, Classes: tc.classes}
			for a := range p.Classes {
				p.Classes[a].Rates = []float64{rate}
			}
			used := func(ratio float64) float64 {
				sum := 0.0
				for _, c := range p.Classes {
					for _, i := range c.Members {
						sum += c.Devices * tc.remaining[i] / (ratio*tc.alone[i] - tc.elapsed[i]) / rate
					}
				}
				return sum
			}
			low, high := 10.0, 1000.0
			for range 100 {
				if middle := (low + high) / 2; used(middle) > 1 {
					low = middle
				} else {
					high = middle
				}
			}
			r, err := new(PackedSolver).FinishTimes(t.Context(), p, Finish{Elapsed: tc.elapsed, Remaining: tc.remaining, Exclusive: tc.alone}, false)
			if err != nil || math.Abs(-r.Level-high) > 1e-5*high || r.Bound < -high*(1+1e-6) {
				t.Errorf("a ratio of %v, proven %v: %v; want %v", -r.Level, -r.Bound, err, high)
			}
		})
	}
}

// With more jobs than a program is refined for, shares are as sound: what cannot be had in pairs is had alone, and level and bound tell what that costs.
func TestPackedWithManyJobs(t *testing.T) {
	t.Parallel()
	for name, maxMin := range map[string]bool{"max min": true, "finish times": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(exactUpTo+1, exactUpTo+16).Draw(t, "jobs")
				p := Packed{Capacity: []float64{float64(rapid.IntRange(1, 20).Draw(t, "capacity"))}}
				classes := rapid.IntRange(1, 3).Draw(t, "classes")
				for range classes {
					p.Classes = append(p.Classes, PackedClass{Devices: 1, Rates: []float64{rapid.Float64Range(0.2, 1).Draw(t, "alone")}})
				}
				var level Level
				var finish Finish
				for i := range n {
					class := 0
					switch {
					case i < classes: // each has a member
						class = i
					case i < 4*classes: // the others have few, which have to be beside themselves
						class = rapid.IntRange(0, classes-1).Draw(t, "class")
					}
					p.Classes[class].Members = append(p.Classes[class].Members, i)
					level.Floor, level.Slope = append(level.Floor, 0), append(level.Slope, rapid.SampledFrom([]float64{0.1, 1, 5}).Draw(t, "slope"))
					finish.Elapsed, finish.Exclusive = append(finish.Elapsed, 1), append(finish.Exclusive, 2)
					finish.Remaining = append(finish.Remaining, rapid.SampledFrom([]float64{0.1, 1, 5}).Draw(t, "remaining"))
				}
				for a := range classes {
					rate := rapid.Float64Range(0.5, 1).Draw(t, "paired") * p.Classes[a].Rates[0]
					p.Pairs = append(p.Pairs, PackedPair{First: a, Second: a, Rates: [2]float64{rate, rate}})
				}
				var r PackedResult
				var err error
				reach := func(i int, rate float64) bool { return rate >= level.Slope[i]*r.Level }
				if maxMin {
					r, err = new(PackedSolver).MaxMin(t.Context(), p, level, false)
				} else {
					r, err = new(PackedSolver).FinishTimes(t.Context(), p, finish, false)
					reach = func(i int, rate float64) bool { return finish.ratio(i, rate*(1+1e-3)) <= -r.Level*(1+1e-3) }
				}
				if err != nil {
					t.Fatal(err)
				}
				checkPacked(t, p, r, reach)
				if r.Level > r.Bound+1e-6*math.Abs(r.Bound) || r.Level < r.Bound-0.5*math.Abs(r.Bound) {
					t.Fatalf("level %v, bound %v", r.Level, r.Bound)
				}
			})
		})
	}
}
