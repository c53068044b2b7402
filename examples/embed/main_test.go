package main

// The same on every machine.
func Example() {
	main()
	// Output:
	// fifo        mean JCT  2323 s  makespan 61326 s
	// las         mean JCT  2026 s  makespan 60393 s
	// last_first  mean JCT 12551 s  makespan 581292 s
}
