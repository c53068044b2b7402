package optim

import (
	"cmp"
	"math"
	"slices"
)

// A Share is a number of devices that a job can run on, and what that is worth.
type Share struct {
	Devices int     // from 1 up
	Value   float64 // what they are worth, in any unit
}

// Division divides devices of one type among jobs, each of which is to run: it chooses one level for each job, so that the sum
// of the values is the largest that fits.
//
// It is the dynamic program over jobs and devices of Saxena et al. (MASCOTS'20; elastic scaling), exact for values of any shape:
// P(j, q) = max over the levels k of job j of P(j-1, q-k) + value(k). Among equals the total is the least, and each job, from the
// last to the first, takes the least. Two bounds make it quick where curves are nearly concave: the price of a device at which
// the hulls of the values fill the capacity says what each level loses at least, and levels that lose more than what a greedy
// fill misses are left out; and after j jobs no more devices are used than their largest levels add up to. Where so many levels
// are left that the program would take long, and the fill is as good as the bound, it is the fill, and among equals another one.
//
// O(jobs × devices × levels), of which few are left as a rule. The zero value is ready. It holds the buffers of its calls: it is
// reused, by one goroutine at a time.
type Division struct {
	levels []Share // those left of all jobs, one job after the other
	first  []int   // where those of a job begin, and one more
	later  []int   // devices that a job and those behind it need at least
	steps  []step
	hull   []Share
	fill   []int
	row    []float64
	next   []float64
	took   []int32 // by job and devices: the devices that the job takes
	picks  []int
}

// step is an edge of the upper hull of a job's values.
type step struct {
	slope   float64
	devices int
	value   float64
	job     int32
}

// Solve chooses among the levels of each job, which come by ascending devices, and returns the devices of each job and the sum
// of the values. It is false when the smallest levels together do not fit, or a job has none. Values are finite. The slice belongs
// to the Division and lasts until its next call.
func (d *Division) Solve(capacity int, jobs [][]Share) (devices []int, value float64, ok bool) {
	needed := 0
	for _, levels := range jobs {
		if len(levels) == 0 {
			return nil, 0, false
		}
		needed += levels[0].Devices
	}
	if needed > capacity {
		return nil, 0, false
	}
	d.picks = grown(d.picks, len(jobs))
	price, most, filled := d.greedy(capacity-needed, jobs)
	d.reduce(price, most-filled, jobs)
	if len(d.levels)*capacity > longProgram && most-filled <= roundoff*math.Abs(most)*float64(len(jobs)) {
		return d.picks, filled, true
	}
	return d.picks, d.program(capacity), true
}

// longProgram is how many states of the program take too long, some 10 ms.
const longProgram = 1 << 24

// greedy takes edges of hulls, the steepest first, while they fit. The price is the slope of the first that did not, most an upper
// bound on the sum of the values, and filled the sum of a selection that fits.
func (d *Division) greedy(room int, jobs [][]Share) (price, most, filled float64) {
	d.steps = d.steps[:0]
	for j, levels := range jobs {
		filled += levels[0].Value
		d.picks[j] = levels[0].Devices
		d.hull = append(d.hull[:0], levels[0])
		for _, l := range levels[1:] {
			for len(d.hull) > 1 && slope(d.hull[len(d.hull)-2], d.hull[len(d.hull)-1]) < slope(d.hull[len(d.hull)-2], l) {
				d.hull = d.hull[:len(d.hull)-1]
			}
			d.hull = append(d.hull, l)
		}
		for i, l := range d.hull[1:] {
			before := d.hull[i]
			if l.Value <= before.Value {
				break
			}
			d.steps = append(d.steps, step{slope(before, l), l.Devices - before.Devices, l.Value - before.Value, int32(j)})
		}
	}
	slices.SortStableFunc(d.steps, func(a, b step) int { return cmp.Compare(b.slope, a.slope) })
	d.fill = grown(d.fill, len(jobs)) // 1 for a job whose next edge did not fit
	clear(d.fill)
	most, whole := filled, room
	full := false
	for _, s := range d.steps {
		if !full {
			part := min(s.devices, whole)
			most += s.value * float64(part) / float64(s.devices)
			if whole -= part; whole == 0 {
				price, full = s.slope, true
			}
		}
		if d.fill[s.job] == 0 && s.devices <= room {
			room -= s.devices
			filled += s.value
			d.picks[s.job] += s.devices
			continue
		}
		d.fill[s.job] = 1
	}
	return price, most, filled
}

func slope(a, b Share) float64 { return (b.Value - a.Value) / float64(b.Devices-a.Devices) }

// reduce keeps the levels of each job that may be part of a best selection: at the price none of these loses more than the gap.
func (d *Division) reduce(price, gap float64, jobs [][]Share) {
	d.levels, d.first = d.levels[:0], append(d.first[:0], 0)
	for _, levels := range jobs {
		best, scale := math.Inf(-1), 0.0
		for _, l := range levels {
			best = max(best, l.Value-price*float64(l.Devices))
			scale = max(scale, math.Abs(l.Value))
		}
		for _, l := range levels {
			if best-(l.Value-price*float64(l.Devices)) <= gap+roundoff*(scale+math.Abs(gap)+1)*float64(len(jobs)) {
				d.levels = append(d.levels, l)
			}
		}
		d.first = append(d.first, len(d.levels))
	}
}

// roundoff is what sums of values may be off by, as a part of them: levels that close to the bound are kept. Sums that differ by a tie
// are equal: in which order values are added decides nothing.
const (
	roundoff = 1e-12
	tie      = 1e-12
)

// program is the dynamic program over the levels that are left.
func (d *Division) program(capacity int) (value float64) {
	jobs := len(d.first) - 1
	width := capacity + 1
	d.row = grown(d.row, width)
	d.next = grown(d.next, width)
	d.took = grown(d.took, jobs*width)
	d.row[0] = 0
	from, to := 0, 0 // so many devices may be in use
	d.later = grown(d.later, jobs+1)
	d.later[jobs] = 0
	for j := jobs - 1; j >= 0; j-- {
		d.later[j] = d.later[j+1] + d.levels[d.first[j]].Devices
	}
	for j := range jobs {
		levels := d.levels[d.first[j]:d.first[j+1]]
		newFrom := from + levels[0].Devices
		newTo := min(to+levels[len(levels)-1].Devices, capacity-d.later[j+1])
		took := d.took[j*width : (j+1)*width]
		for q := newFrom; q <= newTo; q++ {
			d.next[q] = math.Inf(-1)
		}
		for _, l := range levels { // ascending, and only what is better: among equals the least
			worth, k := l.Value, int32(l.Devices)
			for q := from + l.Devices; q <= min(to+l.Devices, newTo); q++ {
				if v := d.row[q-l.Devices] + worth; v > d.next[q]+tie*math.Abs(v) {
					d.next[q], took[q] = v, k
				}
			}
		}
		d.row, d.next = d.next, d.row
		from, to = newFrom, newTo
	}
	at := from
	for q := from; q <= to; q++ {
		if d.row[q] > d.row[at]+tie*math.Abs(d.row[q]) {
			at = q
		}
	}
	value = d.row[at]
	for j := jobs - 1; j >= 0; j-- {
		d.picks[j] = int(d.took[j*width+at])
		at -= d.picks[j]
	}
	return value
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
