package metrics

// Synthesizer is which compositions decided, and when the run chose others.
type Synthesizer struct {
	Method    string    `json:"method"`     // name of the method that chooses
	Looks     int       `json:"looks"`      // how often candidates were compared
	Switches  int       `json:"switches"`   // how often another candidate took over
	TakenBack int       `json:"taken_back"` // of the switches, those back to the one before
	InForce   []InForce `json:"in_force"`   // in the order of the config
	Log       []Switch  `json:"log"`        // every switch, in order of time
}

// InForce is how long a composition decided.
type InForce struct {
	Name    string `json:"name"`    // name of the candidate
	Seconds Number `json:"seconds"` // seconds of the run for which it decided
}

// Switch is that one composition took over from another.
type Switch struct {
	AtSeconds Number `json:"at_seconds"` // moment of the run, in seconds
	Round     int    `json:"round"`      // the first that it decided
	From      string `json:"from"`       // candidate that decided before
	To        string `json:"to"`         // candidate that took over
	Why       string `json:"why"`        // reason, as a sentence
	TakenBack bool   `json:"taken_back"` // back to the one before, for the forecast did not hold
	// GainRatio is the part of the objective that was expected to be gained, between LowRatio and HighRatio at 95 %; null where nothing was simulated.
	GainRatio Number `json:"gain_ratio"`
	LowRatio  Number `json:"low_ratio"`  // lower end of the 95 % interval of GainRatio
	HighRatio Number `json:"high_ratio"` // upper end of the 95 % interval of GainRatio
}
