package study

import "context"

// Merge takes what other folders keep of the runs of a study and writes its tables. It runs nothing: where seeds are
// added until intervals are narrow, those of the first look that are missing are missing.
func Merge(ctx context.Context, s *Study, o Options, from []string) (*Result, error) {
	return s.look(ctx, &o, func(kept *store, runs []*Run, result *Result) error {
		return result.take(kept, runs, from)
	})
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
