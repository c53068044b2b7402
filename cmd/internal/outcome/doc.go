// Package outcome runs a composition for a command, and prints what came of it.
package outcome
