//go:build !race

package core_test

const looseAllocations = 1
