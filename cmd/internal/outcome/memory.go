package outcome

import (
	"os"
	"runtime/debug"
)

// manyJobs is a workload whose memory matters: some 40 MB of jobs.
const manyJobs = 100_000

// spareMemory halves the room that the garbage collector leaves itself, when a large workload was read. What is in memory
// then lives to the end of the run, and what a run lets go of is little beside it: the collector would keep as much memory
// again to save a few of its cycles. GOGC, where it is set, has the last word.
func spareMemory(jobs int) {
	if _, set := os.LookupEnv("GOGC"); jobs >= manyJobs && !set {
		debug.SetGCPercent(50)
	}
}
