package core

import (
	"hash/fnv"
	"math/rand/v2"
)

// NewRand returns the random stream of one component: the same seed and id give the same stream on every machine, and
// streams of different ids are independent.
func NewRand(seed uint64, id string) *rand.Rand { return rand.New(NewStream(seed, id)) }

// NewStream is what the numbers of NewRand come from. A copy goes on where it is.
func NewStream(seed uint64, id string) *rand.PCG {
	h := fnv.New64a()
	h.Write([]byte(id)) // never fails
	return rand.NewPCG(seed, h.Sum64())
}
