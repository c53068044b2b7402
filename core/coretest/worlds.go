package coretest

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Effort is how hard Check looks.
type Effort struct {
	Worlds int    // random worlds to try; 0 for 100
	Seed   uint64 // of the first one; 0 for another one each time
}

const (
	defaultWorlds = 100
	defaultSeed   = 1 // of suites under go test, so that they try the same worlds each time
	shortDivisor  = 5 // by which go test -short divides the number of worlds
)

// Variables of the environment that say what Effort the suites make under `go test`; a seed of 0 is another one each time.
const (
	worldsVariable = "CORETEST_WORLDS"
	seedVariable   = "CORETEST_SEED"
)

// effortUnderTest is what the environment asks for.
func effortUnderTest(t *testing.T) Effort {
	t.Helper()
	e := Effort{Worlds: defaultWorlds, Seed: defaultSeed}
	if testing.Short() {
		e.Worlds /= shortDivisor
	}
	var err error
	if text := os.Getenv(worldsVariable); text != "" {
		if e.Worlds, err = strconv.Atoi(text); err != nil || e.Worlds < 1 {
			t.Fatalf("%s=%s: not a number of worlds", worldsVariable, text)
		}
	}
	if text := os.Getenv(seedVariable); text != "" {
		if e.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%s: not a seed", seedVariable, text)
		}
	}
	return e
}

// explore holds a property in random worlds up to the first where it does not hold. It tells the fault, and the seed of that world.
func (e Effort) explore(property func(*T)) (fault string, seed uint64) {
	first := cmp.Or(e.Seed, rand.Uint64()) //nolint:forbidigo // who gives no seed wants other worlds each time
	for i := range cmp.Or(e.Worlds, defaultWorlds) {
		seed = cmp.Or(first+uint64(i), 1) // 0 is that of no world
		fault = faultIn(seed, property)
		if fault == "" {
			continue
		}
		if again := faultIn(seed, property); again == "" {
			fault = "only once, and not again in the same world: " + fault
		}
		return fault, seed
	}
	return "", 0
}

func faultIn(seed uint64, property func(*T)) string {
	return recorded(func(t TB) { property(NewT(t, newStream(seed))) })
}

// inWorlds holds a property in random worlds under `go test`. One where it does not hold is gone through again, for all to see what was drawn.
func inWorlds(t *testing.T, property func(*T)) {
	t.Helper()
	fault, seed := effortUnderTest(t).explore(property)
	if fault == "" {
		return
	}
	t.Errorf("%s\nsee it again: %s=%d %s=1 go test -run '^%s$'; what was drawn:", fault, seedVariable, seed, worldsVariable, strings.ReplaceAll(t.Name(), "/", "$/^"))
	world := newStream(seed)
	world.tell = t.Logf
	property(NewT(t, world))
}
