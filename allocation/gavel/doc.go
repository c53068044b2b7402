// Package gavel holds the policies that divide the time of accelerators of several types among jobs, and the round
// mechanism that turns such shares into grants.
//
// A policy is asked when jobs come or end what fraction of time each job should spend on each type. In between, the
// mechanism grants devices, round by round, to the jobs that lag furthest behind their shares.
//
// Source: Narayanan et al., Gavel, OSDI 2020.
package gavel
