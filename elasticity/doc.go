// Package elasticity holds the built-in elasticity policies: what a job does with accelerators, how it is tuned to
// those it got, and how many nodes the cluster should have. One file is one policy.
package elasticity
