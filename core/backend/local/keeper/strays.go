package keeper

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core/agent"
)

// lookAgain is how often something is looked at that cannot be waited for.
const lookAgain = 20 * time.Millisecond

// Found is a live process of a run.
type Found struct {
	Identity
	Run    string // its folder
	Keeper bool   // or one's child that is yet to become a replica; else it is a replica, or was started by one
}

// holder is a process that has a variable in its environment.
type holder struct {
	Identity
	value string
}

// Find lists the processes of the runs in a folder, which may be that of one run, by the environment they were started with:
// keepers first, then replicas and what these started, as far as it still has that.
func Find(folder string) (list []Found) {
	below := func(path string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
	for _, p := range withVariable(Variable) {
		if below(p.value) {
			list = append(list, Found{p.Identity, p.value, true})
		}
	}
	for _, p := range withVariable(agent.RendezvousVariable) {
		if below(p.value) {
			list = append(list, Found{p.Identity, filepath.Dir(p.value), false})
		}
	}
	return list
}

// EndStrays kills the processes of the runs in a folder, which may be that of one run, but for runs whose keeper is to be
// spared: keepers, their replicas, and what the replicas of keepers that are gone left behind. It returns when all of it is
// gone.
func EndStrays(folder string, spare func(keeper Identity) bool) {
	for {
		left := 0
		found := Find(folder)
		spared := map[string]bool{} // folders of runs: a replica that is being started has its keeper's environment yet
		for _, p := range found {
			if p.Keeper && spare != nil && spare(p.Identity) {
				spared[p.Run] = true
			}
		}
		for _, p := range found {
			if !spared[p.Run] {
				p.Kill()
				left++
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(lookAgain)
	}
}
