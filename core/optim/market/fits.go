package market

import (
	"errors"
	"fmt"
)

// Fits reports which of the sizes the types hold at once, jobs taken in their order: one that does not fit beside those
// before it is left out. A size of 0 never fits.
func Fits(jobs []Job, workers Workers, sizes []int) ([]bool, error) {
	p, err := newProblem(jobs, workers)
	if len(sizes) != len(jobs) {
		err = errors.Join(err, fmt.Errorf("market: %d sizes, want one for each of %d jobs", len(sizes), len(jobs)))
	}
	if err != nil {
		return nil, err
	}
	agents := make([]int, len(jobs))
	for i := range agents {
		agents[i] = -1
	}
	for i := range p.agents {
		agents[p.agents[i].job] = i
	}
	s, fits := p.newSeats(), make([]bool, len(jobs))
	for i, size := range sizes {
		fits[i] = size > 0 && agents[i] >= 0 && size <= p.agents[agents[i]].most && s.add(agents[i], size)
	}
	return fits, nil
}
