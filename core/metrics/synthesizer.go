package metrics

// Synthesizer is which compositions decided, and when the run chose others.
type Synthesizer struct {
	Method    string    `json:"method"`
	Looks     int       `json:"looks"`
	Switches  int       `json:"switches"`
	TakenBack int       `json:"taken_back"` // of the switches, those back to the one before
	InForce   []InForce `json:"in_force"`   // in the order of the config
	Log       []Switch  `json:"log"`
}

// InForce is how long a composition decided.
type InForce struct {
	Name    string `json:"name"`
	Seconds Number `json:"seconds"`
}

// Switch is that one composition took over from another.
type Switch struct {
	AtSeconds Number `json:"at_seconds"`
	Round     int    `json:"round"` // the first that it decided
	From      string `json:"from"`
	To        string `json:"to"`
	Why       string `json:"why"`
	TakenBack bool   `json:"taken_back"` // back to the one before, for the forecast did not hold
	// GainRatio is the part of the objective that was expected to be gained, between LowRatio and HighRatio at 95 %; null where nothing was simulated.
	GainRatio Number `json:"gain_ratio"`
	LowRatio  Number `json:"low_ratio"`
	HighRatio Number `json:"high_ratio"`
}
