package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/quartet-sched/quartet"
)

func main() {
	f, _ := os.Create("/tmp/t/cpu.prof")
	pprof.StartCPUProfile(f)
	r, err := quartet.Simulate(context.Background(), quartet.Builtins(), quartet.Options{Files: []string{os.Args[1]}, Sets: os.Args[2:]})
	pprof.StopCPUProfile()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Summary.Jobs.Completed, r.Summary.WallSeconds, r.Summary.DecisionSeconds.ByComponent)
}
