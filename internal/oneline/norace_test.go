//go:build !race

package oneline_test

const looseAllocations = 1
