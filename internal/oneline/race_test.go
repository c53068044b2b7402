//go:build race

package oneline_test

// looseAllocations is how many times more is allocated under the race detector, which empties the pools of regexp at random.
const looseAllocations = 20
