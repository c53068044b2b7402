// Package optim solves the optimisation problems that allocation and placement policies come down to. It knows numbers
// only: no job, node or view of the scheduler.
//
//   - [SharesSolver] divides the time of accelerators of a few types among many jobs over a [Polytope]: max-min
//     fairness with floors, water-filling, finish-time fairness, makespan, largest sum, and plain feasibility.
//   - [Knapsack] picks a choice for each of many jobs, with a capacity for each type.
//   - [Bundles] picks one of several bundles of two resources for each of many jobs.
//   - [Transport] and [Auction] match; package market places jobs on unlike workers with them. [Pairing] matches in graphs of one kind.
//   - [Queues] puts jobs into the queues of machines for the least sum of completion times.
//
// Every solver repeats: same input, same bytes. Every answer comes with a certificate (prices, duals or a bound) that
// can be checked without trusting the solver. Input that makes no sense is an error that names all that is wrong, never
// a panic; a cancelled context ends a solve soon.
package optim
