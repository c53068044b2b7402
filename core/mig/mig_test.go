package mig

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// maximal lists the layouts to which nothing can be added, as the instances with their starts.
func maximal(l Layout, from int, so []string, found map[string]bool) {
	added := false
	for p := range profiles {
		for _, start := range Of(p).Starts {
			if !l.Fits(p, start) {
				continue
			}
			added = true
			if start >= from {
				maximal(l|At(p, start), start+1, append(slices.Clone(so), fmt.Sprintf("%s@%d", Of(p).Name, start)), found)
			}
		}
	}
	if !added {
		found[fmt.Sprint(so)] = true
	}
}

func TestThereAre19MaximalLayouts(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	maximal(0, 0, nil, found)
	if len(found) != 19 {
		t.Errorf("%d maximal layouts, want 19: %v", len(found), found)
	}
}

// instance is one that a test placed.
type instance struct {
	p     Profile
	start int
}

// However instances come and go, each has slices of its own from a start that it may have, and the compute slices suffice.
func TestPlacesAreLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l Layout
		var on []instance
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(on) > 0 && rapid.IntRange(0, 2).Draw(t, "free") == 0 {
				i := rapid.IntRange(0, len(on)-1).Draw(t, "which")
				l &^= At(on[i].p, on[i].start)
				on = slices.Delete(on, i, i+1)
				continue
			}
			p := Profile(rapid.IntRange(0, int(profiles)-1).Draw(t, "profile"))
			start, fits := l.Place(p)
			if any := slices.ContainsFunc(Of(p).Starts, func(s int) bool { return l.Fits(p, s) }); fits != any {
				t.Fatalf("%s fits into %08b: %t, want %t", Of(p).Name, l, fits, any)
			}
			if !fits {
				continue
			}
			if !slices.Contains(Of(p).Starts, start) || l&At(p, start) != 0 {
				t.Fatalf("%s placed at %d of %08b", Of(p).Name, start, l)
			}
			l |= At(p, start)
			on = append(on, instance{p, start})
			compute, memory := 0, 0
			for _, i := range on {
				compute, memory = compute+Of(i.p).Compute, memory+Of(i.p).Memory
			}
			if compute > ComputeSlices || memory != Slices-l.Free() {
				t.Fatalf("%v have %d compute slices, and %d memory slices of the %d taken", on, compute, memory, Slices-l.Free())
			}
		}
	})
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		on   Layout
		p    Profile
		want int // -1 for nowhere
	}{
		"the smallest at the end, so that all but the largest fit": {0, OneG, 6},
		"the next in the half that is begun":                       {At(OneG, 6), OneG, 4},
		"two in the half that is begun":                            {At(OneG, 6), TwoG, 4},
		"three leave the half that four need":                      {0, ThreeG, 4},
		"three in the other half":                                  {At(ThreeG, 4), ThreeG, 0},
		"four only at the beginning":                               {At(OneG, 0), FourG, -1},
		"seven only on an empty device":                            {At(OneG, 6), SevenG, -1},
		"seven":                                                    {0, SevenG, 0},
		"no start at the last slice":                               {0x7f, OneG, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start, fits := tc.on.Place(tc.p)
			if !fits {
				start = -1
			}
			if start != tc.want {
				t.Errorf("%s goes to %d of %08b, want %d", Of(tc.p).Name, start, tc.on, tc.want)
			}
		})
	}
}

// Wherever an instance goes, no other start of it leaves room for more profiles, and of those that leave room for as many none leaves more places.
func TestPlacesLeaveMost(t *testing.T) {
	t.Parallel()
	for l := Layout(0); ; l++ {
		for _, p := range Profiles() {
			left := func(start int) (kinds, places int) {
				for _, q := range Profiles() {
					n := (l | At(p, start)).Starts(q)
					places += n
					kinds += min(n, 1)
				}
				return kinds, places
			}
			got, fits := l.Place(p)
			if !fits {
				continue
			}
			kinds, places := left(got)
			for _, start := range Of(p).Starts {
				if !l.Fits(p, start) || start == got {
					continue
				}
				if k, n := left(start); k > kinds || k == kinds && (n > places || n == places && start < got) {
					t.Errorf("%s goes to %d of %08b, which leaves %d profiles and %d places; %d leaves %d and %d", Of(p).Name, got, l, kinds, places, start, k, n)
				}
			}
		}
		if l == 1<<Slices-1 {
			return
		}
	}
}

func TestSmallest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		part, whole int
		want        Profile
	}{
		"nothing":                        {0, 1000, OneG},
		"a seventh":                      {1, 7, OneG},
		"a seventh in 142 of a thousand": {142, 1000, OneG},
		"a little more":                  {143, 1000, TwoG},
		"two sevenths":                   {2, 7, TwoG},
		"a third":                        {333, 1000, ThreeG},
		"three sevenths":                 {3, 7, ThreeG},
		"half":                           {500, 1000, FourG},
		"four sevenths":                  {4, 7, FourG},
		"of five there is none":          {5, 7, SevenG},
		"all":                            {1000, 1000, SevenG},
		"in another unit":                {1, 1, SevenG},
		"more than there is":             {2000, 1000, SevenG},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Smallest(tc.part, tc.whole); got != tc.want {
				t.Errorf("%d of %d is %s, want %s", tc.part, tc.whole, Of(got).Name, Of(tc.want).Name)
			}
		})
	}
}

// A fragment is the free slices that are in no place of the profile.
func TestFragment(t *testing.T) {
	t.Parallel()
	for l := range 1 << Slices {
		for p := range profiles {
			useful := Layout(0)
			for start := range Slices {
				if Layout(l).Fits(p, start) {
					useful |= At(p, start)
				}
			}
			if got, want := Layout(l).Fragment(p), Layout(l).Free()-bits.OnesCount8(uint8(useful)); got != want {
				t.Fatalf("%08b has %d slices of no use to %s, want %d", l, got, Of(p).Name, want)
			}
		}
	}
	for _, p := range Profiles() {
		if got, known := ByName(Of(p).Name); !known || got != p {
			t.Errorf("%q is the name of %v, %t", Of(p).Name, got, known)
		}
	}
	if _, known := ByName("5g"); known {
		t.Error("there is a profile 5g")
	}
	if linear, none := Speed(ThreeG, 1), Speed(ThreeG, 0); math.Abs(linear-3.0/7) > 1e-12 || none != 1 {
		t.Errorf("3g is %v and %v as fast as a device", linear, none)
	}
}
