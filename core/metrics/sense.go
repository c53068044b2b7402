package metrics

import "strings"

// Sense reports whether more of a number of a summary, by its path such as jct_seconds.mean, is better (1), worse (-1) or neither
// (0). Between runs of the same jobs GPU time is a cost, and unused devices are a loss.
func Sense(path string) int {
	for _, worse := range [...]string{
		"jct_seconds.", "queueing_seconds.", "makespan_seconds", "gpu_hours", "restarts.", "preemptions", "fairness.", "gap_ratio.",
		"jobs.rejected", "jobs.failed", "jobs.cancelled", "jobs.unfinished", "deadlines.missed", "deadlines.declined", "deadlines.broken",
		"deadlines.lateness", "tiers.oversold_seconds", "bill.",
	} {
		if strings.HasPrefix(path, worse) {
			return -1
		}
	}
	switch {
	case path == "jobs.completed", path == "utilization_ratio", path == "deadlines.met", path == "deadlines.ratio",
		strings.HasPrefix(path, "tiers.") && (strings.HasSuffix(path, ".ratio") || strings.HasSuffix(path, ".jobs_met")):
		return 1
	}
	return 0
}
