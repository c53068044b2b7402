// Package mig divides a device into instances as MIG does on the A100 and the H100: 7 compute slices and 8 memory slices, of which an instance has some in a
// row, from few starts.
package mig

import (
	"math"
	"math/bits"
	"slices"
)

// Slices is how many memory slices a device has, and ComputeSlices how many for compute.
const (
	Slices        = 8
	ComputeSlices = 7
)

// Profile is a kind of instance, an index of Profiles.
type Profile uint8

// The profiles, by compute slices.
const (
	OneG Profile = iota
	TwoG
	ThreeG
	FourG
	SevenG
	profiles
)

// Instance is what a profile has of a device.
type Instance struct {
	// Name: name of the profile, such as 3g.
	Name            string
	Compute, Memory int   // slices of compute and of memory that it takes
	Starts          []int // memory slices that it may begin at, ascending
}

var instances = [profiles]Instance{
	{"1g", 1, 1, []int{0, 1, 2, 3, 4, 5, 6}},
	{"2g", 2, 2, []int{0, 2, 4}},
	{"3g", 3, 4, []int{0, 4}},
	{"4g", 4, 4, []int{0}},
	{"7g", 7, 8, []int{0}},
}

// Of is what a profile has of a device.
func Of(p Profile) *Instance { return &instances[p] }

// Profiles are all of them.
func Profiles() []Profile { return []Profile{OneG, TwoG, ThreeG, FourG, SevenG} }

// ByName is the profile of a name.
func ByName(name string) (Profile, bool) {
	for p := range profiles {
		if instances[p].Name == name {
			return p, true
		}
	}
	return 0, false
}

// Smallest is the smallest profile that has so much of the compute of a device, part of whole; the largest where none has.
func Smallest(part, whole int) Profile {
	for p := range profiles {
		if instances[p].Compute*whole >= part*ComputeSlices {
			return p
		}
	}
	return SevenG
}

// Layout is the memory slices of a device that instances have, bit i for slice i.
type Layout uint8

// At is the slices of an instance that begins at one.
func At(p Profile, start int) Layout { return Layout((1<<instances[p].Memory - 1) << start) }

// Fits reports whether an instance may begin at a slice: it is one of its starts, and nobody has a slice of it.
func (l Layout) Fits(p Profile, start int) bool {
	return slices.Contains(instances[p].Starts, start) && l&At(p, start) == 0
}

// Free is how many memory slices nobody has.
func (l Layout) Free() int { return Slices - bits.OnesCount8(uint8(l)) }

// Fragment is how many of the free memory slices are of no use to a profile: in no place where an instance of it may be.
func (l Layout) Fragment(p Profile) int { return table[l][p].fragment }

// Starts is in how many places an instance may be.
func (l Layout) Starts(p Profile) int { return table[l][p].starts }

// Place is where an instance goes: after which there are most places for instances, of all profiles together, and then the lowest start. No other start leaves
// room for more profiles. It reports false when there is no place.
func (l Layout) Place(p Profile) (start int, fits bool) {
	e := &table[l][p]
	return e.place, e.starts > 0
}

// entry is what is known of a layout and a profile.
type entry struct{ place, starts, fragment int }

var table = build()

func build() (t [1 << Slices][profiles]entry) {
	for l := range t {
		for p := range profiles {
			useful := Layout(0)
			for _, start := range instances[p].Starts {
				if at := At(p, start); Layout(l)&at == 0 {
					t[l][p].starts++
					useful |= at
				}
			}
			t[l][p].fragment = Layout(l).Free() - bits.OnesCount8(uint8(useful))
		}
	}
	for l := range t {
		for p := range profiles {
			most := -1
			for _, start := range instances[p].Starts {
				if Layout(l)&At(p, start) != 0 {
					continue
				}
				places := 0
				for q := range profiles {
					places += t[Layout(l)|At(p, start)][q].starts
				}
				if places > most {
					t[l][p].place, most = start, places
				}
			}
		}
	}
	return t
}

// Speed is how fast a job is on an instance against a whole device, for one whose rates were not measured: its part of the compute slices to the power of
// how well it scales down, 0..1; with 1 it is as many times slower as it has fewer slices, and with 0 it does not notice.
func Speed(p Profile, power float64) float64 {
	return math.Pow(float64(instances[p].Compute)/ComputeSlices, power)
}
