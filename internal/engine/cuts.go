package engine

import "github.com/quartet-sched/quartet/core"

// cuts is an observer that notes that a scaler wants more nodes of a pool, or fewer, than its bounds allow, or so many in all where there
// are several pools: once for each scaler and pool.
type cuts struct {
	note func(text string)
	told map[[2]string]bool // by the id of the scaler and the name of the pool
}

func (c *cuts) ObserveRound(r *core.Report) error {
	if r.Cut == nil || r.Repeated {
		return nil
	}
	of := [2]string{r.Cut.By}
	if r.Cut.Pool != nil {
		of[1] = r.Cut.Pool.Name
	}
	if !c.told[of] {
		c.told[of] = true
		c.note(r.Cut.String())
	}
	return nil
}
