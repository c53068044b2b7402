package engine

import "github.com/quartet-sched/quartet/core"

// scalingLimits is an observer that notes that a scaler wants more nodes of a pool, or fewer, than its bounds allow, or a number of nodes in
// all where there are several pools: once for each scaler and pool.
type scalingLimits struct {
	note  func(text string)
	noted map[[2]string]bool // by the id of the scaler and the name of the pool
}

// ObserveRound notes what the round clamped.
func (c *scalingLimits) ObserveRound(r *core.Report) error {
	if r.Clamped == nil || r.Repeated {
		return nil
	}
	of := [2]string{r.Clamped.By}
	if r.Clamped.Pool != nil {
		of[1] = r.Clamped.Pool.Name
	}
	if !c.noted[of] {
		c.noted[of] = true
		c.note(r.Clamped.String())
	}
	return nil
}
