package study

import (
	"context"
)

// Explore runs a study in steps. next is shown the rows of all its runs, in the order of the tables, of which only those that it
// asked for so far have records, and says by index which to run now; none when it has seen enough. So what it asks for depends on
// what it saw, and not on what is kept from before. The tables are of the runs that were asked for; Execute on the same study
// runs the others. An error besides a result is that of the context.
func Explore(ctx context.Context, s *Study, o Options, next func(rows []Row) ([]int, error)) (*Result, error) {
	o.runs = true
	e := &expansion{Study: s, options: &o, told: map[string]bool{}, sources: map[string]*sourceFacts{}}
	runs, err := e.expand(ctx, s.Seeds.Count)
	if err != nil {
		return nil, err
	}
	kept, closed, err := open(o.Dir, lockFile)
	if err != nil {
		return nil, err
	}
	defer closed()
	rows := make([]Row, len(runs))
	for i, run := range runs {
		rows[i].Run = run
	}
	asked := make([]bool, len(runs))
	result := &Result{Study: s, Looks: 1, Narrow: true, Known: true}
	for ctx.Err() == nil {
		indices, err := next(rows)
		if err != nil {
			return nil, err
		}
		if len(indices) == 0 {
			break
		}
		step := make([]*Run, len(indices))
		for k, i := range indices {
			step[k], asked[i] = runs[i], true
		}
		if err := execute(ctx, kept, step, &o, result); err != nil && ctx.Err() == nil {
			return nil, err // nothing more can be kept
		}
		for _, i := range indices {
			rows[i].Record = kept.read(runs[i].Hash)
		}
	}
	var some []*Run
	for i, run := range runs {
		if asked[i] {
			some = append(some, run)
		}
	}
	result.gather(kept, some)
	if err := s.writeResolved(o.Dir); err != nil { // now, for next may have chosen a baseline
		return nil, err
	}
	if err := result.write(kept, &o); err != nil {
		return nil, err
	}
	return result, ctx.Err()
}

// Value is a number of the summary of the run by its path, such as jct_seconds.mean; NaN where there is none.
func (r *Row) Value(metric string) float64 { return r.metric(metric) }
