// Package score places tasks that take parts of devices, CPUs and memory: filter, score, choice of devices.
//
// One walk serves every policy; a policy is a Scorer in a file of its own. It knows nothing of rounds and jobs: nodes and tasks come in,
// seats go out, and what is taken can be given back.
package score
