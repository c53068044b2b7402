// Package agent is what a training job and its scheduler exchange while the job runs: JSON lines over a unix
// socket, one object a line, each of its keys a message. docs/agent.md describes it for other languages.
//
// A job need not speak it: then nothing is learned of it and its batch stays as it is. A side that does not know a
// message or a field ignores it; a side that receives garbage ends the connection and says why. Neither side waits for
// the other: of what could not be written yet, only the latest message of each kind is kept.
package agent
