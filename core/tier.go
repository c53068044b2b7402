package core

// The tiers of service, in the order in which they are served. A job without one is served as a basic one.
const (
	Premium  = "premium"
	Standard = "standard"
	Basic    = "basic"
)

// Tiers lists the tiers, in the order in which they are served.
func Tiers() []string { return []string{Premium, Standard, Basic} }

// TierRank is the place of a tier among Tiers; that of Basic for a job without a tier, and -1 for one that there is not.
func TierRank(tier string) int {
	switch tier {
	case Premium:
		return 0
	case Standard:
		return 1
	case Basic, "":
		return 2
	}
	return -1
}

// Guarantees are the parts of the device time they request that jobs of each tier are guaranteed, from 0 to 1, in the order of Tiers.
type Guarantees [3]float64

// UsualGuarantees are those of an allocator that names none.
func UsualGuarantees() Guarantees { return Guarantees{0.95, 0.70, 0} }

// Guarantor is implemented by an allocator that guarantees jobs of each tier a part of the device time that they request.
type Guarantor interface {
	// Guarantees are the parts of the requested device time, by tier.
	Guarantees() Guarantees
}
