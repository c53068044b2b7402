// Package control is how people give orders to a scheduler while it runs, and ask it what it does: gRPC over a unix socket
// that is for one user only, or over TCP with certificates on both sides.
package control
