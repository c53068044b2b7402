package core

// Goal says which values of a metric are better.
type Goal uint8

// The goals: whether smaller or larger values are better.
const (
	Minimize Goal = iota
	Maximize
)

// Better reports whether value a is better than b. NaN is worse than any number.
func (g Goal) Better(a, b float64) bool {
	if g == Maximize {
		return a > b || b != b && a == a
	}
	return a < b || b != b && a == a
}

var goalNames = [...]string{"minimize", "maximize"}

// String returns the name of the goal: "minimize" or "maximize".
func (g Goal) String() string { return name(goalNames[:], int(g)) }
