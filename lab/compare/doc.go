// Package compare compares runs, folders of runs and studies: what differs between their compositions, whether their inputs are
// the same, how their metrics differ and how sure that is, and which jobs gained or lost.
package compare
