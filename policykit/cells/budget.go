package cells

// Budget counts jobs in the cells of a virtual cluster on one accelerator type. A job takes the cells that it would in the idle virtual
// cluster: as many whole ones as it can of the highest level, and of each lower one for the rest. Where they lie is left open, so that jobs
// as large as cells fit if and only if they could be seated together; of others it may find that more fit than can be.
type Budget struct {
	sizes []int // devices of a cell, by level; ascending
	quota []int // cells by level; none for a tenant without cells of the type
	taken []int // cells by level, of all jobs
	wants []int // of the job that is looked at
	top   int   // the highest level of the quota; -1 for none
}

// Budgets appends the virtual clusters of all tenants, by tenant and accelerator type, without any job.
func (v *Clusters) Budgets(list []Budget) []Budget {
	for i := range v.tenants {
		k := &v.chains[i%len(v.chains)]
		b := Budget{quota: v.tenants[i].quota, taken: make([]int, len(k.levels)), wants: make([]int, len(k.levels)), top: len(v.tenants[i].quota) - 1}
		for b.top >= 0 && b.quota[b.top] == 0 {
			b.top--
		}
		for level := range k.levels {
			b.sizes = append(b.sizes, k.levels[level].Devices)
		}
		list = append(list, b)
	}
	return list
}

// Clear forgets all jobs.
func (b *Budget) Clear() { clear(b.taken) }

// Devices is how many devices the virtual cluster has.
func (b *Budget) Devices() int { return b.devices(b.quota) }

// Left is how many of them no job takes; below 0 when there are more jobs than fit.
func (b *Budget) Left() int { return b.devices(b.quota) - b.devices(b.taken) }

func (b *Budget) devices(cells []int) int {
	sum := 0
	for k, n := range cells {
		sum += n * b.sizes[k]
	}
	return sum
}

// Holds reports whether the idle virtual cluster holds a job of n devices.
func (b *Budget) Holds(n int) bool { return b.divide(n) == 0 }

// Fits reports whether a job of n devices fits beside those that there are. O(levels).
func (b *Budget) Fits(n int) bool {
	if b.divide(n) > 0 {
		return false
	}
	quota, taken, touched := 0, 0, false // cells of the level, those in larger ones included
	for k := b.top; k >= 0; k-- {
		quota, taken = quota+b.quota[k], taken+b.taken[k]+b.wants[k]
		touched = touched || b.wants[k] > 0
		if touched && taken > quota {
			return false
		}
		if k > 0 {
			fan := b.sizes[k] / b.sizes[k-1]
			quota, taken = quota*fan, taken*fan
		}
	}
	return true
}

// Take counts a job of n devices, whether it fits or not.
func (b *Budget) Take(n int) {
	rest := b.divide(n)
	for k := range b.top + 1 {
		b.taken[k] += b.wants[k]
	}
	if len(b.taken) > 0 {
		b.taken[0] += rest
	}
}

// divide divides a job of n devices into cells, and returns how many are beyond the virtual cluster.
func (b *Budget) divide(n int) int {
	spare := 0 // cells of the level, those in larger ones included
	for k := b.top; k >= 0; k-- {
		spare += b.quota[k]
		take := spare
		if size := b.sizes[k]; spare*size > n {
			take = n / size
		}
		b.wants[k] = take
		n -= take * b.sizes[k]
		if k > 0 {
			spare = (spare - take) * (b.sizes[k] / b.sizes[k-1])
		}
	}
	return n
}
