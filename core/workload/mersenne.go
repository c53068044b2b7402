package workload

import "math/bits"

// mersenne is the Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), as Python's random module seeds and uses it. It is
// there to repeat published workloads; nothing else draws from it.
type mersenne struct {
	state [mersenneWords]uint32
	next  int
}

const (
	mersenneWords  = 624
	mersenneMiddle = 397
)

// newMersenne is random.Random(seed).
func newMersenne(seed uint64) *mersenne {
	key := []uint32{uint32(seed), uint32(seed >> 32)}
	if key[1] == 0 {
		key = key[:1]
	}
	m := &mersenne{}
	m.state[0] = 19650218
	for i := 1; i < mersenneWords; i++ {
		m.state[i] = 1812433253*(m.state[i-1]^m.state[i-1]>>30) + uint32(i)
	}
	i := 1
	advance := func() {
		if i++; i == mersenneWords {
			m.state[0], i = m.state[mersenneWords-1], 1
		}
	}
	for k := range mersenneWords {
		k %= len(key)
		m.state[i] = (m.state[i] ^ (m.state[i-1]^m.state[i-1]>>30)*1664525) + key[k] + uint32(k)
		advance()
	}
	for range mersenneWords - 1 {
		m.state[i] = (m.state[i] ^ (m.state[i-1]^m.state[i-1]>>30)*1566083941) - uint32(i)
		advance()
	}
	m.state[0] = 1 << 31
	m.next = mersenneWords
	return m
}

func (m *mersenne) uint32() uint32 {
	if m.next == mersenneWords {
		for i := range m.state {
			y := m.state[i]&(1<<31) | m.state[(i+1)%mersenneWords]&(1<<31-1)
			m.state[i] = m.state[(i+mersenneMiddle)%mersenneWords] ^ y>>1 ^ (y&1)*0x9908b0df
		}
		m.next = 0
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// float64 is random.random().
func (m *mersenne) float64() float64 {
	high, low := m.uint32()>>5, m.uint32()>>6
	return (float64(high)*(1<<26) + float64(low)) / (1 << 53)
}

// uniform is random.uniform(low, high).
func (m *mersenne) uniform(low, high float64) float64 { return low + float64((high-low)*m.float64()) }

// intN is the index that random.choice draws for a sequence of n.
func (m *mersenne) intN(n int) int {
	width := bits.Len(uint(n))
	for {
		if k := int(m.uint32() >> (32 - width)); k < n {
			return k
		}
	}
}
