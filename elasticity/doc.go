// Package elasticity holds the built-in elasticity policies: what a job does with accelerators, and how it is tuned to those it got.
// How many nodes the cluster should have is decided in its folder scaler.
package elasticity
