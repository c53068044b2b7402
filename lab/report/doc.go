// Package report makes one HTML page of a run, of a study or of several runs, without any request to a network: what it shows is
// inside it, as columns of numbers. It reads the files of runs and studies as docs/outputs.md defines them, of this version and of
// earlier ones. What is missing or cannot be read is reported on the page, and the same files give the same bytes.
package report
