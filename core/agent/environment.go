package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	// What a replica has of its device and its machine, where that is less than all and it is counted: for the program to keep to.
	ShareVariable        = "QUARTET_SHARE_MILLI"      // thousandths of its device
	DeviceMemoryVariable = "QUARTET_DEVICE_MEMORY_GB" // of its device
	CPUsVariable         = "QUARTET_CPUS"
	MemoryVariable       = "QUARTET_MEMORY_GB"
	// Of a scheduler on another machine, whose socket is tls://HOST:PORT.
	CAVariable    = "QUARTET_AGENT_CA"    // certificates to know it by, as PEM text
	TokenVariable = "QUARTET_AGENT_TOKEN" // file of the token that says who the job is
)

// Environment is what a replica finds in its environment when it starts.
type Environment struct {
	Job        string // name of the job
	Rank       int    // of the replica, from 0
	Replicas   int    // how many there are
	Nodes      int    // how many nodes they sit on
	Rendezvous string // folder private to this run of the job, where replicas find each other
	Checkpoint string // folder that outlives the run
	Socket     string // path, or tls://HOST:PORT; empty without a scheduler
	CA         string // PEM text; with TLS only
	Token      string // file, read at each connect, as it is written anew before it expires; with TLS only

	// Worlds says that the program takes another World while it runs. No variable does: the program sets it.
	Worlds bool
}

// ReadEnvironment reads the variables with a function such as os.LookupEnv. Those that are not set stand for a job
// that runs alone: one replica, of rank 0, on one node, without folders or scheduler. It looks whether the token can be read.
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
		CA: text(CAVariable), Token: text(TokenVariable),
	}
	e.Replicas = number(ReplicasVariable, 1, 1, MaxReplicas)
	e.Rank = number(RankVariable, 0, 0, e.Replicas-1)
	e.Nodes = number(NodesVariable, 1, 1, e.Replicas)
	_, remote := scheme(e.Socket)
	if e.Replicas > 1 && e.Rendezvous == "" && !remote { // replicas on several machines find each other by address
		problems = append(problems, fmt.Errorf("%s: is not set, but there are %d replicas", RendezvousVariable, e.Replicas))
	}
	if e.Socket != "" && e.Job == "" {
		problems = append(problems, fmt.Errorf("%s: is not set, but %s is", JobVariable, SocketVariable))
	}
	if len(e.Job) > maxName {
		problems = append(problems, fmt.Errorf("%s: has %d bytes, must have %d at most", JobVariable, len(e.Job), maxName))
	}
	if remote {
		problems = append(problems, e.checkRemote()...)
	}
	return e, errors.Join(problems...)
}

// scheme is that of a socket which is an address rather than a path.
func scheme(socket string) (string, bool) {
	name, _, found := strings.Cut(socket, "://")
	return name, found && !strings.Contains(name, "/")
}

// checkRemote lists what makes a scheduler unreachable that is not on this machine.
func (e Environment) checkRemote() (problems []error) {
	if _, err := remoteAddress(e.Socket); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", SocketVariable, err))
	}
	if e.CA == "" {
		problems = append(problems, fmt.Errorf("%s: is not set, but %s is an address", CAVariable, SocketVariable))
	} else if _, err := authorities(e.CA); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", CAVariable, err))
	}
	if e.Token == "" {
		problems = append(problems, fmt.Errorf("%s: is not set, but %s is an address", TokenVariable, SocketVariable))
	} else if _, err := readToken(e.Token); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", TokenVariable, err))
	}
	return problems
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
	set(CAVariable, e.CA)
	set(TokenVariable, e.Token)
	return v
}
