package restart

// Charge names how a policy weighs the cost of a restart against what a job gains by it. Age, MatureAge and Horizon take a part of the
// job's speed, see SpeedLeft; Life and Arrival take seconds, see Seconds.
type Charge string

// The ways to weigh a restart.
const (
	// Age charges the part of its life that a job lost to restarts, the next one included: Pollux, OSDI'21, section 4.2.
	Age Charge = "age"
	// MatureAge is Age but for jobs younger than one restart takes, which pay nothing: Sia, SOSP'23, section 3.
	MatureAge Charge = "mature_age"
	// Horizon charges the pause as a part of a span ahead, whatever the job paid before.
	Horizon Charge = "horizon"
	// Life charges the pause once in all that the job has left to do.
	Life Charge = "for_life"
	// Arrival charges the pause in the time until the next job arrives, which takes devices anyway.
	Arrival Charge = "until_arrival"
)

// Weighing is what a policy knows of a job whose devices it may change. All times are in seconds.
type Weighing struct {
	// Pause is what the change costs, in seconds.
	Pause float64
	// Past is what each earlier restart cost, in seconds.
	Past float64
	// Restarts is the number of earlier restarts.
	Restarts int
	// Age is the time since the job was submitted, in seconds.
	Age float64
	// Span is the time ahead over which Horizon spreads the pause, in seconds.
	Span float64
}

// SpeedLeft returns the part of its speed, from 0 to 1, that a job keeps after it is charged for a change. It is for Age, MatureAge
// and Horizon.
func (c Charge) SpeedLeft(w Weighing) float64 {
	if c == Horizon {
		return max(w.Span-w.Pause, 0) / w.Span
	}
	if c == MatureAge && w.Age < w.Pause || w.Age+w.Pause <= 0 {
		return 1 // nothing is lost
	}
	return max(w.Age-w.Past*float64(w.Restarts), 0) / (w.Age + w.Pause)
}

// Seconds returns what a pause counts for a job that has a number of seconds left to run, where a job arrives every so many seconds.
// It is for Life and Arrival.
func (c Charge) Seconds(pause, left, apart float64) float64 {
	if c == Arrival {
		return pause * max(1, left/apart)
	}
	return pause
}
