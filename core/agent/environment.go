package agent

import (
	"errors"
	"fmt"
	"strconv"
)

// The variables that a replica finds in its environment.
const (
	JobVariable        = "QUARTET_JOB"        // name of the job
	RankVariable       = "QUARTET_RANK"       // of the replica, from 0
	ReplicasVariable   = "QUARTET_REPLICAS"   // how many there are
	NodesVariable      = "QUARTET_NODES"      // how many nodes they sit on
	RendezvousVariable = "QUARTET_RENDEZVOUS" // folder private to this run of the job, where replicas find each other
	CheckpointVariable = "QUARTET_CHECKPOINT" // folder that outlives the run
	SocketVariable     = "QUARTET_AGENT"      // socket of the scheduler; absent when there is none
)

// Environment is what a replica is told when it starts.
type Environment struct {
	Job             string
	Rank            int
	Replicas, Nodes int
	Rendezvous      string
	Checkpoint      string
	Socket          string // empty without a scheduler
}

// ReadEnvironment reads the variables with a function such as os.LookupEnv. Those that are not set stand for a job
// that runs alone: one replica, of rank 0, on one node, without folders or scheduler.
func ReadEnvironment(lookup func(string) (string, bool)) (Environment, error) {
	text := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	var problems []error
	number := func(name string, absent, least, most int) int {
		value, set := lookup(name)
		if !set || value == "" {
			return absent
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			problems = append(problems, fmt.Errorf("%s: %q is not a whole number from %d to %d", name, value, least, most))
			return absent
		}
		return n
	}
	e := Environment{
		Job: text(JobVariable), Rendezvous: text(RendezvousVariable), Checkpoint: text(CheckpointVariable), Socket: text(SocketVariable),
	}
	e.Replicas = number(ReplicasVariable, 1, 1, MaxReplicas)
	e.Rank = number(RankVariable, 0, 0, e.Replicas-1)
	e.Nodes = number(NodesVariable, 1, 1, e.Replicas)
	if e.Replicas > 1 && e.Rendezvous == "" {
		problems = append(problems, fmt.Errorf("%s: is not set, but there are %d replicas", RendezvousVariable, e.Replicas))
	}
	if e.Socket != "" && e.Job == "" {
		problems = append(problems, fmt.Errorf("%s: is not set, but %s is", JobVariable, SocketVariable))
	}
	if len(e.Job) > maxName {
		problems = append(problems, fmt.Errorf("%s: has %d bytes, must have %d at most", JobVariable, len(e.Job), maxName))
	}
	return e, errors.Join(problems...)
}

// Variables are those to start the replica with, as NAME=value, without those that are empty.
func (e Environment) Variables() []string {
	var v []string
	set := func(name, value string) {
		if value != "" {
			v = append(v, name+"="+value)
		}
	}
	set(JobVariable, e.Job)
	set(RankVariable, strconv.Itoa(e.Rank))
	set(ReplicasVariable, strconv.Itoa(e.Replicas))
	set(NodesVariable, strconv.Itoa(e.Nodes))
	set(RendezvousVariable, e.Rendezvous)
	set(CheckpointVariable, e.Checkpoint)
	set(SocketVariable, e.Socket)
	return v
}
