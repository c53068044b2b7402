// Package cluster says what commands ask of a scheduler on many machines, and how a program is linked with one.
package cluster
