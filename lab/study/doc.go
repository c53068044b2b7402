// Package study runs a matrix of compositions over workloads, loads and seeds, and compares what they come to.
//
// A study file names axes; a cell is one item of each; a run is a cell and a replicate, which is a seed or a window of a trace.
// Runs of one workload, load and replicate see the same jobs and the same random numbers, whatever schedules them, so that
// comparisons are paired. The independent unit of the statistics is the workload with its replicate.
//
// Every run is kept under the hash of its resolved config and of the program. What is kept and whose input files are still the
// same is not run again, so that repeats are free and an interrupted study goes on. The tables depend on nothing but the study.
package study
