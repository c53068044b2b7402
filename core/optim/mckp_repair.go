package optim

import "math"

// offer makes a selection fit and improves it by single changes; it is kept when it is the best so far.
func (k *Knapsack) offer(picks []int) {
	k.count(picks)
	if !k.shrink(picks) {
		return
	}
	k.grow(picks)
	if value := k.worthOf(picks); value > k.value {
		k.value = value
		k.picks = append(k.picks[:0], picks...)
	}
}

// count fills used with the devices of a selection.
func (k *Knapsack) count(picks []int) {
	clear(k.used)
	for i, pick := range picks {
		if pick >= 0 {
			c := &k.menus[i].Choices[pick]
			k.used[c.Type] += c.Devices
		}
	}
}

func (k *Knapsack) worthOf(picks []int) (value float64) {
	for i, pick := range picks {
		if pick >= 0 {
			value += k.menus[i].Choices[pick].Value
		}
	}
	return value
}

// of is the choice of a job by its index, where none is no device of type 0.
func (k *Knapsack) of(i, pick int) Choice {
	if pick < 0 {
		return Choice{}
	}
	return k.menus[i].Choices[pick]
}

// first is the least index a job may pick.
func (k *Knapsack) first(i int) int {
	if k.menus[i].Forced {
		return 0
	}
	return -1
}

// shrink changes the job that loses least, at the prices, for every device by which the excess falls, until all fits.
func (k *Knapsack) shrink(picks []int) bool {
	for k.excess(Choice{}, Choice{}) > 0 {
		job, to, least := -1, 0, math.Inf(1)
		over := k.excess(Choice{}, Choice{})
		for i, pick := range picks {
			from := k.of(i, pick)
			if k.used[from.Type] <= k.capacity[from.Type] || from.Devices == 0 {
				continue
			}
			worth := from.Value - k.price[from.Type]*float64(from.Devices)
			for c := k.first(i); c < len(k.menus[i].Choices); c++ {
				choice := k.of(i, c)
				less := over - k.excess(from, choice)
				if less <= 0 {
					continue
				}
				loss := (worth - choice.Value + k.price[choice.Type]*float64(choice.Devices)) / float64(less)
				if loss < least {
					job, to, least = i, c, loss
				}
			}
		}
		if job < 0 {
			return false
		}
		k.change(picks, job, to)
	}
	return true
}

// excess is the devices beyond the capacities once one choice replaces another.
func (k *Knapsack) excess(from, to Choice) (over int) {
	for t, room := range k.capacity {
		used := k.used[t]
		if t == from.Type {
			used -= from.Devices
		}
		if t == to.Type {
			used += to.Devices
		}
		over += max(0, used-room)
	}
	return over
}

// grow changes the job that gains most for what its devices are priced at, while something fits.
func (k *Knapsack) grow(picks []int) {
	for {
		job, to, most := -1, 0, 0.0
		for i, pick := range picks {
			from := k.of(i, pick)
			had := k.price[from.Type] * float64(from.Devices)
			for c := k.first(i); c < len(k.menus[i].Choices); c++ {
				choice := k.of(i, c)
				gain := choice.Value - from.Value
				if gain <= 1e-12*math.Abs(k.bound) || !k.fits(from, choice) {
					continue
				}
				pays := math.Max(k.price[choice.Type]*float64(choice.Devices)-had, 1e-9*gain)
				if gain/pays > most {
					job, to, most = i, c, gain/pays
				}
			}
		}
		if job < 0 {
			return
		}
		k.change(picks, job, to)
	}
}

func (k *Knapsack) fits(from, to Choice) bool {
	used := k.used[to.Type] + to.Devices
	if from.Type == to.Type {
		used -= from.Devices
	}
	return used <= k.capacity[to.Type]
}

func (k *Knapsack) change(picks []int, job, to int) {
	from, choice := k.of(job, picks[job]), k.of(job, to)
	k.used[from.Type] -= from.Devices
	k.used[choice.Type] += choice.Devices
	picks[job] = to
}
