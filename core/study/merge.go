package study

import (
	"context"
)

// Merge takes what other folders keep of the runs of a study and writes its tables. It runs nothing: with seeds added until
// intervals are narrow, it looks at those that are there.
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
	result := &Result{Study: s, Narrow: true, Looks: 1}
	for _, r := range runs {
		if own := kept.read(r.Hash); own != nil && own.Outcome != Failed {
			result.Reused++
			continue
		}
		for _, folder := range from {
			taken, err := kept.take(&store{dir: folder}, r.Hash)
			if err != nil {
				return nil, err
			}
			if taken {
				result.Ran++
				break
			}
		}
	}
	result.gather(kept, runs)
	if err := result.write(kept, &o); err != nil {
		return nil, err
	}
	return result, nil
}
