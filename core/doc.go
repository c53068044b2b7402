// Package core is the language of Quartet: jobs, nodes, the view a stage reads, what each stage answers, and the
// round that walks a cluster through the four stages.
//
// Times are seconds since the start of the run unless a name says otherwise. Identifiers are dense: the n-th job in
// submission order is JobID n, the n-th node of the cluster NodeID n, so that tables replace maps and every order is
// the order of identifiers.
package core
