package core

import "fmt"

// WholeDevice is the compute of a device, in thousandths.
const WholeDevice = 1000

// Share is the part of a device that each replica of a job has. No two replicas of a job are on the same device.
type Share struct {
	// Milli is the compute, in thousandths of a device, 0..WholeDevice. A replica with 0 computes on CPUs alone: it is seated at a device, and
	// takes nothing of it.
	Milli int
}

// Part is the compute of a device that a replica of the job has, 0..1.
func (s *JobSpec) Part() float64 {
	if s.Share == nil {
		return 1
	}
	return float64(s.Share.Milli) / WholeDevice
}

// served is a job as the cluster serves it: with whole devices where they are not divided.
func (s *state) served(spec *JobSpec) *JobSpec {
	switch how := s.view.Cluster.Sharing; {
	case spec.Share == nil, how == Fractional, how == TimeSlice && spec.Share.Milli == 0:
		return spec
	}
	whole := *spec
	whole.Share = nil
	return &whole
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
)

var sharingNames = [...]string{"none", "fractional", "timeslice"}

func (s Sharing) String() string { return name(sharingNames[:], int(s)) }

// Known reports whether it is one of these: another one is of a newer host.
func (s Sharing) Known() bool { return int(s) < len(sharingNames) }

// SharingOf is the way of sharing of a name, as String gives it.
func SharingOf(name string) (Sharing, error) {
	for i, n := range sharingNames {
		if n == name {
			return Sharing(i), nil
		}
	}
	return Exclusive, fmt.Errorf("no way of sharing is called %q; valid names: %v", name, sharingNames)
}
