// Package promise plans which devices jobs need, and when, so that all of them are done by their deadlines.
//
// A plan gives a job a number of replicas from moment to moment. Plans are made in the order of the deadlines, each as late and on
// as few devices as its job allows, so that those with later deadlines find what is left (progressive filling).
//
// Source: Gu et al., ElasticFlow (ASPLOS'23), minimum satisfactory share. Deviations: time is not divided into slots, but for changes,
// which fall on a grid where rounds do; and a change of the number of replicas costs the time that it does.
package promise
