package study

import "context"

// Merge takes what other folders keep of the runs of a study and writes its tables. It runs nothing: where seeds are
// added until intervals are narrow, those of the first look that are missing are missing.
func Merge(ctx context.Context, s *Study, o Options, from []string) (*Result, error) {
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
	if err := s.writeResolved(o.Dir); err != nil {
		return nil, err
	}
	result := &Result{Study: s, Narrow: true}
	for look := 1; ; look++ {
		if err := result.take(kept, runs, from); err != nil {
			return nil, err
		}
		result.gather(kept, runs)
		result.Looks = look
		if s.Seeds.Until == nil {
			break
		}
		if result.Narrow = s.narrow(result, look); result.Narrow || look*s.Seeds.Count >= s.Seeds.Until.Most || result.Missing > 0 {
			break
		}
		if runs, err = e.expand(ctx, min((look+1)*s.Seeds.Count, s.Seeds.Until.Most)); err != nil {
			return nil, err
		}
	}
	if err := result.write(kept, &o); err != nil {
		return nil, err
	}
	return result, nil
}

// take takes what is not kept of runs from where it is.
func (r *Result) take(kept *store, runs []*Run, from []string) error {
	r.Ran, r.Reused = 0, 0
	for _, run := range runs {
		if own := kept.read(run.Hash); own != nil && own.Outcome != Failed {
			r.Reused++
			continue
		}
		for _, folder := range from {
			taken, err := kept.take(&store{dir: folder}, run.Hash)
			if err != nil {
				return err
			}
			if taken {
				r.Ran++
				break
			}
		}
	}
	return nil
}
