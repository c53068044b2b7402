// Package program is the command line as a whole: the root command, its exit codes, and the hand-over to a program with more backends.
package program
