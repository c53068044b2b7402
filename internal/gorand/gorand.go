// Package gorand is the stream of Go's original math/rand, from which published experiments were drawn. Decisions never use it.
package gorand

import "math/rand"

// New is a stream of its own; the Go 1 promise keeps what a seed draws.
func New(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }
