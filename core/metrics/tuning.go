package metrics

// Tuning is what a search for hyper-parameters came to.
type Tuning struct {
	Experiment string     `json:"experiment"`
	Metric     string     `json:"metric"`
	Goal       string     `json:"goal"`
	Trials     int        `json:"trials"` // that were submitted
	Finished   int        `json:"finished"`
	Stopped    int        `json:"stopped"` // ended early
	Failed     int        `json:"failed"`
	Unfinished int        `json:"unfinished"`
	Best       *BestTrial `json:"best"` // null where none reported
}

// BestTrial is the trial with the best value, and of those the first.
type BestTrial struct {
	Trial     int          `json:"trial"`
	Job       string       `json:"job"`
	Params    []TrialParam `json:"params"`
	Value     Number       `json:"value"`
	Step      Number       `json:"step"`       // at which it reported that
	AtSeconds Number       `json:"at_seconds"` // and when: the seconds to the best
}

// TrialParam is a hyper-parameter with its value, as a text.
type TrialParam struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
