// Package placement holds the built-in placers: which devices a grant is seated on. One file is one policy.
//
// Every placer first lets running jobs be: a job that is granted as many devices as it holds keeps exactly those, as
// long as their nodes are ready. The other grants are then seated in their order, each on nodes of one accelerator
// type: the one on which it needs the fewest nodes where the policy consolidates, and otherwise the lowest in which it
// fits. A running job whose number changes gives all its devices back first. Two take devices from jobs that are granted what they
// hold: tail_eviction, and buddy, which seats them elsewhere.
package placement
