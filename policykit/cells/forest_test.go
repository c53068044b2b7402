package cells

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// drawForest draws a tree of two to four levels with a few roots, of which some are smaller than the others.
func drawForest(r *rand.Rand) *Forest {
	levels := []Level{{"0", 1}}
	for k := range 1 + r.IntN(3) {
		levels = append(levels, Level{string(rune('1' + k)), levels[k].Devices * (2 + r.IntN(3))})
	}
	grouped := make([][]ID, len(levels)-1)
	start, n := ID(0), levels[len(levels)-1].Devices*(1+r.IntN(3))+r.IntN(levels[len(levels)-1].Devices)
	devices := n
	for k := 1; k < len(levels); k++ {
		fan := levels[k].Devices / levels[k-1].Devices
		for i := range n / fan {
			grouped[k-1] = append(grouped[k-1], start+ID(i*fan))
		}
		start, n = start+ID(n), n/fan
	}
	return newForest(levels, devices, grouped)
}

// drawQuota draws cells for tenants that can be had at once, until nothing is left of a device.
func drawQuota(r *rand.Rand, levels []Level, sound []int, tenants int) [][]int {
	quotas, total := make([][]int, tenants), make([]int, len(levels))
	for i := range quotas {
		quotas[i] = make([]int, len(levels))
	}
	for range 40 {
		k, of := r.IntN(len(levels)), r.IntN(tenants)
		total[k]++
		if _, missing := Missing(levels, sound, total); missing > 0 {
			total[k]--
			continue
		}
		quotas[of][k]++
	}
	return quotas
}

// Sharing safety: when all cells that tenants are promised can be had at once, then a tenant that asks for one gets it, whatever
// was given and taken back before. On 10,000 trees; see also TestASharedClusterServesLikePrivateOnes.
func TestNothingInsideAQuotaIsRefused(t *testing.T) {
	asked := 0
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		f := drawForest(r)
		quotas := drawQuota(r, f.levels, f.Sound(nil), 3)
		type held struct {
			tenant int
			cell   ID
		}
		var all []held
		for range 60 {
			of, k := r.IntN(len(quotas)), r.IntN(len(f.levels))
			if quotas[of][k] > 0 && r.IntN(3) > 0 {
				asked++
				c := f.Alloc(k)
				if c == None {
					t.Fatalf("seed %d: tenant %d is refused a cell of level %d inside its quota", seed, of, k)
				}
				quotas[of][k]--
				all = append(all, held{of, c})
			} else if len(all) > 0 {
				i := r.IntN(len(all))
				quotas[all[i].tenant][f.cells[all[i].cell].level]++
				f.Free(all[i].cell)
				all = slices.Delete(all, i, i+1)
			}
			checkForest(t, f)
		}
		for _, h := range all {
			f.Free(h.cell)
		}
		for id := range f.cells {
			if c := &f.cells[id]; (c.state == free) != (c.parent == None) {
				t.Fatalf("seed %d: cell %d is in state %d when all are given back", seed, id, c.state)
			}
		}
	}
	if asked < 100_000 {
		t.Errorf("asked for %d cells only", asked)
	}
}

// checkForest checks that each device is in one cell that is free, taken or broken, and all that is counted.
func checkForest(t *testing.T, f *Forest) {
	t.Helper()
	covered := make([]int, len(f.withheld))
	for id := range f.cells {
		c := &f.cells[id]
		if c.state != inside && c.state != split {
			first, end := f.devices(ID(id))
			for d := first; d < end; d++ {
				covered[d]++
			}
		}
		if c.state == broken && (c.first != None || !f.bad(ID(id))) {
			t.Fatalf("cell %d is broken", id)
		}
		if c.state == free && c.bad > 0 {
			t.Fatalf("cell %d is free and has %d broken devices", id, c.bad)
		}
		if c.first == None {
			continue
		}
		first, end := f.children(ID(id))
		var kids, idle, bad, guests int32
		for child := first; child < end; child++ {
			k := &f.cells[child]
			idle, bad, guests = idle+k.idle, bad+k.bad, guests+k.guests
			if k.state == free {
				kids++
			}
		}
		if kids != c.free || ID(kids) == end-first || idle != c.idle || bad != c.bad || guests != c.guests {
			t.Fatalf("cell %d counts %d free children, %d idle, %d broken, %d guests; there are %d, %d, %d, %d", id, c.free, c.idle, c.bad, c.guests, kids, idle, bad, guests)
		}
	}
	for d, n := range covered {
		if n != 1 {
			t.Fatalf("device %d is in %d cells", d, n)
		}
	}
	for level, head := range f.heads {
		for c, prev := head, None; c != None; prev, c = c, f.cells[c].next {
			if x := &f.cells[c]; x.state != free || x.prev != prev || int(x.level) != level {
				t.Fatalf("cell %d in the list of level %d: %+v", c, level, *x)
			}
		}
	}
}

// Devices break and are mended while cells are taken, claimed and given back, and guests come and go.
func TestBrokenDevices(t *testing.T) {
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := drawForest(r)
		var held []ID
		for range 60 {
			d := ID(r.IntN(len(f.withheld)))
			switch r.IntN(6) {
			case 0, 1:
				f.Usable(d, r.IntN(2) == 0)
			case 2:
				f.withhold(d, r.IntN(3) == 0)
			case 3:
				if c := f.Alloc(r.IntN(len(f.levels))); c != None {
					if f.cells[c].bad > 0 {
						t.Fatalf("seed %d: gave a cell with a broken device", seed)
					}
					held = append(held, c)
				}
			case 4:
				c := f.ancestor(d, r.IntN(len(f.levels)))
				if c != None && f.Claim(c) {
					held = append(held, c)
				}
			case 5:
				if len(held) > 0 {
					i := r.IntN(len(held))
					f.Free(held[i])
					held = slices.Delete(held, i, i+1)
				}
			}
			checkForest(t, f)
		}
	}
}

func TestMissing(t *testing.T) {
	levels := []Level{{LevelDevice, 1}, {LevelNode, 4}, {LevelRack, 8}}
	sound := []int{17, 4, 2} // two racks, and a device of its own
	for name, tc := range map[string]struct {
		wanted         []int
		level, missing int
	}{
		"all":                            {[]int{1, 2, 1}, 0, 0},
		"only devices":                   {[]int{17, 0, 0}, 0, 0},
		"one device too many":            {[]int{2, 2, 1}, 0, 1},
		"a rack too many":                {[]int{0, 0, 3}, 2, 1},
		"no node is left of the racks":   {[]int{0, 1, 2}, 1, 1},
		"a device that is no whole node": {[]int{1, 0, 2}, 0, 0},
		"nodes and devices beside a rack": {
			[]int{6, 1, 1}, 0, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if level, missing := Missing(levels, sound, tc.wanted); level != tc.level || missing != tc.missing {
				t.Errorf("%d of level %d are missing, want %d of %d", missing, level, tc.missing, tc.level)
			}
		})
	}
}

// A cell is split off the smallest free one, and takes as few guests' devices as it can.
func TestAllocTakesTheSmallestAndTheFewestGuests(t *testing.T) {
	f := newForest([]Level{{LevelDevice, 1}, {LevelNode, 2}}, 6, [][]ID{{0, 2, 4}})
	f.lodge(0, true)
	f.lodge(2, true)
	f.lodge(3, true)
	if c := f.Alloc(1); c != 8 {
		t.Errorf("node %d, want 8, which has no guests", c)
	}
	if c := f.Alloc(0); c != 1 {
		t.Errorf("device %d, want 1, beside a guest, of the node with one", c)
	}
	if c := f.Alloc(0); c != 0 {
		t.Errorf("device %d, want 0, the rest of a node that is split", c)
	}
	f.Free(0)
	f.Free(1)
	if f.cells[6].state != free {
		t.Error("two free buddies are no node")
	}
}

// The published operation: a cell is taken from 10,000 devices of four levels, and given back.
func BenchmarkAlloc(b *testing.B) {
	levels := []Level{{LevelDevice, 1}, {"switch", 4}, {LevelNode, 8}, {LevelRack, 80}}
	grouped, start, n := [][]ID{}, ID(0), 10_000
	for k := 1; k < len(levels); k++ {
		fan := levels[k].Devices / levels[k-1].Devices
		var firsts []ID
		for i := range n / fan {
			firsts = append(firsts, start+ID(i*fan))
		}
		grouped = append(grouped, firsts)
		start, n = start+ID(n), n/fan
	}
	f := newForest(levels, 10_000, grouped)
	b.ReportAllocs()
	for b.Loop() {
		f.Free(f.Alloc(0))
	}
}
