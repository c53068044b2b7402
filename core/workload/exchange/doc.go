// Package exchange reads the job logs of other systems into records, and writes records in formats that others read.
//
// An import keeps every row or counts it under a reason: no row is skipped silently. Rows are read as a stream; only what a
// trace keeps of them is held.
package exchange
