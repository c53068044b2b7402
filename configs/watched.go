package configs

import "math/rand/v2"

// watchedRand is numbers of a stream with a call before the first one that is drawn.
func watchedRand(stream *rand.PCG, drawn func()) *rand.Rand { return rand.New(&watched{stream, drawn}) }

// watched is a stream that says once that it was drawn from.
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
