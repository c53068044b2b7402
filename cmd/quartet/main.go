// Command quartet composes a GPU-cluster scheduler from four parts, simulates it, and runs it on this machine. What is on a Kubernetes
// cluster it hands to quartet-kubernetes.
package main

import "github.com/quartet-sched/quartet/cmd/internal/program"

func main() { program.Main(program.Light()) }
