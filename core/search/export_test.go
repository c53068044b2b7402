package search

// TakeAnswer reads a line of an external search that proposed some trials and is asked for others, for the fuzz target.
func TakeAnswer(line []byte, space Space, proposed []Params, asked int, told []Result) ([]Trial, []int, error) {
	h := history{}
	for _, p := range proposed {
		h.add(p)
	}
	if err := h.tell(told); err != nil {
		return nil, nil, err
	}
	a, err := parseAnswer(line)
	if err != nil {
		return nil, nil, err
	}
	return h.take(a, space, asked, told)
}

// ReadTrials and ReadRecord are for fuzz targets.
var (
	ReadTrials = readTrials
	ReadRecord = readRecord
)
