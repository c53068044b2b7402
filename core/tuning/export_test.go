package tuning

import (
	"log/slog"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/workload"
)

// NewWith is New with a search around the one of the config.
func NewWith(wrap func(search.Search) search.Search) core.Factory[workload.Source] {
	return newSource(func(p *plan, seed uint64, log *slog.Logger, _ string) (search.Search, error) {
		s, err := p.chosen.New(seed, log)
		if err != nil {
			return nil, err
		}
		return wrap(s), nil
	})
}
