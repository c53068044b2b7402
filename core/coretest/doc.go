// Package coretest is what the tests of policies are made of: builders of jobs, clusters and views, random worlds, and
// for each stage a conformance suite that every policy passes, built in or served by a plugin.
//
// A suite runs the policy in a real pipeline. The other three stages answer anything the contract allows, and the
// backend lets jobs come, progress, fail and finish and nodes go down at random. The pipeline blames a broken answer as
// it would in a run; the suite adds what a pipeline cannot see: that the View is left alone and not kept, that equal
// instances give equal answers, that nothing undeclared is read, and that what Steady answers is honest.
package coretest
