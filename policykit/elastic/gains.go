package elastic

// Gain is what more replicas are worth to a candidate.
type Gain struct {
	Worth float64 // the larger, the sooner it is served; in the unit of the policy
	Index int32   // of the candidate, as the policy counts them
}

// Gains is a heap of positive gains: the largest first, ties by index.
type Gains []Gain

func (h Gains) before(a, b int) bool {
	return h[a].Worth > h[b].Worth || h[a].Worth == h[b].Worth && h[a].Index < h[b].Index
}

// Add appends a gain, if it is positive, without keeping the order: Heapify must follow.
func (h *Gains) Add(g Gain) {
	if g.Worth > 0 {
		*h = append(*h, g)
	}
}

// Heapify puts the gains that were added in order.
func (h Gains) Heapify() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// ReplaceTop gives the first candidate its next gain, or drops it when that is not positive.
func (h *Gains) ReplaceTop(worth float64) {
	gains := *h
	if worth > 0 {
		gains[0].Worth = worth
	} else {
		last := len(gains) - 1
		gains[0] = gains[last]
		*h = gains[:last]
	}
	h.sink(0)
}

func (h Gains) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.before(child+1, child) {
			child++
		}
		if !h.before(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
