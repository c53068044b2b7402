// Command quartet-kubernetes is quartet with Kubernetes: the same commands, the backend that runs jobs on a cluster, and the commands that
// install the scheduler there.
package main

import (
	"github.com/quartet-sched/quartet/cmd/internal/kube"
	"github.com/quartet-sched/quartet/cmd/internal/program"
)

func main() { program.Main(engine()) }

// engine links the program with Kubernetes.
func engine() program.Engine { return program.Engine{Engine: kube.Engine(), Commands: kube.Commands} }
