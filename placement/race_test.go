//go:build race

package placement

// looseAllocations is what a round may allocate under the race detector, with which the compiler inlines less, so that lists of arguments escape.
const looseAllocations = 1
