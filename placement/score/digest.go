package score

import "github.com/quartet-sched/quartet/core/mig"

// digest tells states of devices apart, whatever their order: the sum of 128 random bits for what each device has left. That two
// different states of a million ever meet has a chance of 10^-26.
type digest struct{ high, low uint64 }

func (d *digest) add(e digest) {
	d.high += e.high
	d.low += e.low
}

func (d *digest) sub(e digest) {
	d.high -= e.high
	d.low -= e.low
}

// What a digest tells of besides devices, in the highest bits of the number.
const (
	nodeState   = iota + 1 // what is left of CPU, and the type
	beforeState            // the same, before a task
	afterState             // what is left of CPU after it
	aheadState
	curveState
	taskState
)

// digestOf is the random bits of a number.
func digestOf(x uint64) digest { return digest{mix(2*x + 1), mix(2*x + 2)} }

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// leftDigests is by thousandths left of a device. A device with nothing left is of no use to anybody, and not told from none.
var leftDigests = func() (d [Whole + 1]digest) {
	for left := 1; left <= Whole; left++ {
		d[left] = digestOf(uint64(left))
	}
	return d
}()

// sliceDigests is by the slices of a device that are taken: where they are matters, and not only how many are left.
var sliceDigests = func() (d [1 << mig.Slices]digest) {
	for layout := range len(d) - 1 {
		d[layout] = digestOf(1<<20 | uint64(layout))
	}
	return d
}()
