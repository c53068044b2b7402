package core

import (
	"fmt"

	"github.com/quartet-sched/quartet/core/mig"
)

// WholeDevice is the compute of a device, in thousandths.
const WholeDevice = 1000

// Share is the part of a device that each replica of a job has. No two replicas of a job are on the same device.
type Share struct {
	// Milli is the compute, in thousandths of a device, 0..WholeDevice. A replica with 0 computes on CPUs alone: it is seated at a device, and
	// takes nothing of it.
	Milli int
	// Profile is the MIG profile of the slice, as mig.Instance names it; empty where it follows from Milli. See JobSpec.Slice.
	Profile string
}

// Part is the compute of a device that a replica of the job has, 0..1: of a job as the cluster serves it, as every view has it, or as it asks for it
// where there is no cluster. Cluster.Part is that of any job on a cluster.
func (s *JobSpec) Part() float64 {
	switch {
	case s.Share == nil:
		return 1
	case s.Share.Profile != "" && s.Share.Milli > 0: // the cluster divides devices into slices: see Sharing.share
		return float64(mig.Of(s.Slice()).Compute) / mig.ComputeSlices
	}
	return float64(s.Share.Milli) / WholeDevice
}

// PartUnits is a whole device in the units of Cluster.PartUnits, which thousandths and compute slices are multiples of, so that sums of them are exact.
const PartUnits = WholeDevice * mig.ComputeSlices

// PartUnits is what a replica of a job takes of the compute of its device on the cluster: all of it where jobs have whole devices, alone or in turns.
func (c *Cluster) PartUnits(j *JobSpec) int {
	switch {
	case j.Share == nil || !c.Sharing.Parts():
		return PartUnits
	case c.Sharing == Mig && j.Share.Milli > 0:
		return mig.Of(j.Slice()).Compute * WholeDevice
	}
	return j.Share.Milli * mig.ComputeSlices
}

// Slice is the MIG profile of the slice that a replica of the job has of a device that is divided so: the one it names, or the smallest with as much
// compute as it asks for; a whole device is the largest. It is of no meaning for a replica that takes nothing of its device.
func (s *JobSpec) Slice() mig.Profile {
	if s.Share == nil {
		return mig.SevenG
	}
	if p, known := mig.ByName(s.Share.Profile); known {
		return p
	}
	return mig.Smallest(s.Share.Milli, WholeDevice)
}

// FinestPart is how many equal parts a device has such that thousandths of it are whole numbers of them, and compute slices, too.
const FinestPart = WholeDevice * mig.ComputeSlices

// Profile names the MIG profile of the slices that the job has where devices are divided so; empty where it takes nothing of them.
func (s *JobSpec) Profile() string {
	if s.Part() == 0 {
		return ""
	}
	return mig.Of(s.Slice()).Name
}

// PartOfProfile is the compute of a slice of a MIG profile, of that of its device; 0 for a name that is none.
func PartOfProfile(name string) float64 {
	p, known := mig.ByName(name)
	if !known {
		return 0
	}
	return float64(mig.Of(p).Compute) / mig.ComputeSlices
}

// Part is the compute of a device that a replica of a job has on the cluster, 0..1, whatever the job asks for: accounts of device time count
// a device that it holds as that. Of a job that the cluster serves already it is JobSpec.Part.
func (c *Cluster) Part(spec *JobSpec) float64 {
	if share, divides := c.Sharing.share(spec); divides {
		return (&JobSpec{Share: &share}).Part()
	}
	return 1
}

// share is what a replica of a job has of its device. It reports false where that is the whole device, for none is divided, or not for it.
func (s Sharing) share(spec *JobSpec) (of Share, divides bool) {
	if spec.Share == nil || s != Fractional && s != Mig {
		return Share{}, false
	}
	if of.Milli = spec.Share.Milli; s == Mig && of.Milli > 0 {
		of.Profile = mig.Of(spec.Slice()).Name
	}
	return of, true
}

// divide has devices shared in another way from now on: what jobs had until then stays what it was. A run may go on with another way, and its earlier
// rounds are then replayed as they were.
func (s *state) divide(how Sharing) {
	s.sharing, s.holders, s.occupancy.current = how, holders{}, false
	for _, j := range s.view.Jobs {
		if j == nil || j.State.Ended() {
			continue
		}
		if asked := s.shares[j.ID]; asked != nil {
			if served := s.served(asked); !sameShare(j.JobSpec, served) {
				j.settle(s.view.NowSeconds)
				j.JobSpec = served
				s.touch(j.ID)
			}
		}
		if j.Sliced = nil; j.State != Running {
			continue
		}
		if how == Mig {
			j.Sliced = slicedAt(s.holders.held(j))
		}
		s.holders.add(how, j, j.Seats, j.Slices(), 1)
	}
}

// served is a job as the cluster serves it: with whole devices where they are not divided.
func (s *state) served(spec *JobSpec) *JobSpec {
	if spec.Share == nil {
		return spec
	}
	share, divides := s.sharing.share(spec)
	if divides && share == *spec.Share {
		return spec
	}
	served := *spec
	if served.Share = nil; divides {
		served.Share = &share
	}
	return &served
}

// Sharing says who may be on a device together.
type Sharing uint8

// The ways of sharing devices.
const (
	// Exclusive gives each device to one job at a time.
	Exclusive Sharing = iota
	// Fractional gives jobs their shares: together at most the device. One that asks for whole devices shares none.
	Fractional
	// TimeSlice lets jobs have whole devices together, Cluster.MaxOwners of them at most: they take turns, or compute at the same time.
	TimeSlice
	// Mig divides each device into slices, as MIG does: every replica has one, and nobody notices the others. Those that nobody has can be divided anew.
	Mig
)

var sharingNames = [...]string{"none", "fractional", "timeslice", "mig"}

// String returns the name of the way of sharing as a config has it, such as "timeslice".
func (s Sharing) String() string { return name(sharingNames[:], int(s)) }

// Known reports whether it is one of these: another one is of a newer host.
func (s Sharing) Known() bool { return int(s) < len(sharingNames) }

// Parts reports whether jobs have parts of devices, so that several fit on one without taking turns.
func (s Sharing) Parts() bool { return s == Fractional || s == Mig }

// SharingOf is the way of sharing of a name, as String gives it.
func SharingOf(name string) (Sharing, error) {
	for i, n := range sharingNames {
		if n == name {
			return Sharing(i), nil
		}
	}
	return Exclusive, fmt.Errorf("no way of sharing is called %q; valid names: %v", name, sharingNames)
}
