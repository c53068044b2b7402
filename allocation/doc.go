// Package allocation holds the built-in allocators: how many devices each job gets, and in which order jobs are
// seated. One file is one policy.
//
// Most policies are an order of the candidates and a walk along it, see package policykit/queue. They leave the accelerator type to the
// placer and count the devices of all ready nodes alike.
package allocation
