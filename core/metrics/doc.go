// Package metrics turns the reports of a pipeline into results: jobs.csv, rounds.csv, decisions.jsonl, accelerators.csv,
// fairness.csv, tenants.csv and the summary of a run. docs/outputs.md defines every field.
//
// What it writes to the CSV and JSONL files depends on the reports alone, never on the machine or the clock. Only the summary
// also holds measured times.
package metrics
