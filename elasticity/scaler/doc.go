// Package scaler holds the built-in policies that decide how many nodes the cluster should have. A file named after a policy holds it;
// scaler.go, counted.go and ladder.go hold what they share: the sizes that a cluster may have, and what jobs make of each.
package scaler
