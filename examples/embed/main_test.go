package main

// The same on every machine.
func Example() {
	main()
	// Output:
	// fifo        mean JCT  2163 s  makespan 60337 s
	// las         mean JCT  2012 s  makespan 60272 s
	// last_first  mean JCT 12551 s  makespan 581292 s
}
