package keeper

// phase is how far a keeper has come with ending the replicas of its run. Phases only move forward.
type phase int

const (
	running  phase = iota // nothing asks the replicas to end
	asked                 // the agent of the job was asked to stop: the replicas get no signal before the grace period is over
	stopping              // the replicas were sent SIGTERM, and have another grace period
	killing               // the replicas were sent SIGKILL
)

// event is something that may change the phase.
type event int

const (
	replicaCompleted event = iota // a replica exited with 0
	replicaFailed                 // a replica exited with another code, or was ended by a signal
	startFailed                   // a replica could not be started
	agentAsked                    // the agent of the job was asked to stop
	stopOrdered                   // the keeper was told to stop its replicas
	killOrdered                   // the keeper was told to kill its replicas at once
	graceOver                     // the grace period is over
)

// action is what a keeper does when an event occurs.
type action int

const (
	wait       action = iota // do nothing
	beginGrace               // begin a grace period
	terminate                // send SIGTERM to every replica that is left, and begin a grace period
	kill                     // send SIGKILL to every replica that is left
)

// transition is what follows an event in a phase.
type transition struct {
	do      action
	next    phase
	outcome Outcome // how the run ends from now on; empty: as before
}

// transitions says what to do for every event in every phase. The first event that leads out of the phase running decides the
// outcome: a replica that fails while the run is stopped did as it was told.
var transitions = [...][graceOver + 1]transition{
	running: {
		replicaCompleted: {wait, running, ""},
		replicaFailed:    {terminate, stopping, Failed},
		startFailed:      {terminate, stopping, Failed},
		agentAsked:       {beginGrace, asked, Stopped},
		stopOrdered:      {terminate, stopping, Stopped},
		killOrdered:      {kill, killing, Stopped},
		graceOver:        {wait, running, ""}, // none has begun
	},
	asked: {
		replicaCompleted: {terminate, stopping, ""}, // the agents of the others may not have been asked
		replicaFailed:    {terminate, stopping, ""},
		startFailed:      {terminate, stopping, ""},
		agentAsked:       {wait, asked, ""},
		stopOrdered:      {terminate, stopping, ""},
		killOrdered:      {kill, killing, ""},
		graceOver:        {terminate, stopping, ""},
	},
	stopping: {
		replicaCompleted: {wait, stopping, ""},
		replicaFailed:    {wait, stopping, ""},
		startFailed:      {wait, stopping, ""},
		agentAsked:       {wait, stopping, ""},
		stopOrdered:      {wait, stopping, ""},
		killOrdered:      {kill, killing, ""},
		graceOver:        {kill, killing, ""},
	},
	killing: {
		replicaCompleted: {wait, killing, ""},
		replicaFailed:    {wait, killing, ""},
		startFailed:      {wait, killing, ""},
		agentAsked:       {wait, killing, ""},
		stopOrdered:      {wait, killing, ""},
		killOrdered:      {wait, killing, ""},
		graceOver:        {wait, killing, ""},
	},
}
