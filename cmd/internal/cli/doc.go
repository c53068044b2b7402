// Package cli holds what the commands share: their streams and exit codes, flags, notes and problems, how a config is loaded, and progress.
package cli
