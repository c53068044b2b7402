// Package exposition serves what a run has come to over HTTP: its metrics in the format of Prometheus, whether the
// scheduler is alive, and whether it is ready. docs/outputs.md lists the metrics.
package exposition
