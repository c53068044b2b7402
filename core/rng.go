package core

import (
	"hash/fnv"
	"math/rand/v2"
)

// NewRand returns the random stream of one component: the same seed and id give the same stream on every machine, and
// streams of different ids are independent.
func NewRand(seed uint64, id string) *rand.Rand { return rand.New(newPCG(seed, id)) }

func newPCG(seed uint64, id string) *rand.PCG {
	h := fnv.New64a()
	h.Write([]byte(id)) // never fails
	return rand.NewPCG(seed, h.Sum64())
}

// NewWatchedRand is NewRand with a call before the first number that is drawn.
func NewWatchedRand(seed uint64, id string, drawn func()) *rand.Rand {
	return rand.New(&watched{newPCG(seed, id), drawn})
}

type watched struct {
	*rand.PCG
	drawn func()
}

func (w *watched) Uint64() uint64 {
	if w.drawn != nil {
		w.drawn()
		w.drawn = nil
	}
	return w.PCG.Uint64()
}
