//go:build !race

package placement

const looseAllocations = 0
