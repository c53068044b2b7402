package pollux

import "math"

// pack is a choice of the jobs that stay on a node: what they save by it in all, one bit each.
type pack struct {
	saved float64
	stays uint64
}

// worth is that of the best of what fits on a node together. It takes those pieces from the subgradient, and the choices
// of the jobs that stay.
func (b *patterns) worth(p *allocator, n int32, devices int) float64 {
	free := b.pack(p, n, devices)
	worth, part, left, stays := math.Inf(-1), 0, 0, uint64(0)
	for spans, packs := range b.packs {
		for d := range devices + 1 {
			at := &packs[d]
			if math.IsInf(at.saved, -1) {
				continue
			}
			rest := devices - d
			if w := at.saved + b.fill[rest]; w > worth {
				worth, part, left, stays = w, 0, rest, at.stays
			}
			if spans == 1 && p.config.InterferenceAvoiding {
				continue
			}
			for piece := 1; piece <= rest; piece++ {
				if w := at.saved + b.part[piece] + b.fill[rest-piece]; w > worth {
					worth, part, left, stays = w, piece, rest-piece, at.stays
				}
			}
		}
	}
	for at, i := range p.search.heldOn[n] {
		if stays&(1<<at) != 0 {
			j := &p.jobs[i]
			b.choices[i].stays++
			b.ask(&b.choices[i], -float64(replicasOn(j.row, n))/float64(j.held))
		}
	}
	b.askedPart[part]--
	for d := int32(left); d > 0; d -= max(b.filled[d], 1) {
		b.asked[b.filled[d]]--
	}
	return worth + free
}

// pack finds, by the devices that they take, the jobs on a node that save most by staying there. It returns what those
// save for which there was no bit: they stay beside the others, which proves less, but nothing wrong.
func (b *patterns) pack(p *allocator, n int32, devices int) float64 {
	spans := 0
	if p.claimed[n] && p.config.InterferenceAvoiding {
		spans = 1
	}
	for i := range b.packs {
		for d := range devices + 1 {
			b.packs[i][d] = pack{saved: math.Inf(-1)}
		}
	}
	b.packs[spans][0].saved = 0
	beside := 0.0
	for at, i := range p.search.heldOn[n] {
		j := &p.jobs[i]
		k := int(replicasOn(j.row, n))
		saved := (b.choices[i].cost - j.stays) * float64(k) / float64(j.held) // each of its nodes counts a part
		if !(saved > 0) {
			continue
		}
		if at >= 64 {
			beside += saved
			continue
		}
		alone := len(j.row) > 1 && p.config.InterferenceAvoiding
		for d := devices; d >= k; d-- {
			if alone {
				b.packs[1][d].keep(&b.packs[0][d-k], saved, at)
				continue
			}
			b.packs[0][d].keep(&b.packs[0][d-k], saved, at)
			b.packs[1][d].keep(&b.packs[1][d-k], saved, at)
		}
	}
	return beside
}

// keep takes another pack with one job more if that saves more.
func (c *pack) keep(other *pack, saved float64, at int) {
	if saved += other.saved; saved > c.saved {
		*c = pack{saved, other.stays | 1<<at}
	}
}
