package main

import (
	"os"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/configs"
)

// TestDocumentedProblemsAreTheRealOnes holds the example of docs/config.md to what a config like it comes to.
func TestDocumentedProblemsAreTheRealOnes(t *testing.T) {
	const text = `version: 1
cluster: {nodes: [{name: n, accelerator: t4, devices: 4}]}
workload: {type: generated}
round: {interval: 60}
pipeline:
  allocation: {type: fifo, config: {quue: blocking}}
`
	_, err := configs.Parse(catalog(), "mine.yaml", []byte(text), configs.Options{})
	if err == nil {
		t.Fatal("the config is accepted")
	}
	documentation, readErr := os.ReadFile("../../docs/config.md")
	if readErr != nil {
		t.Fatal(readErr)
	}
	if !strings.Contains(string(documentation), "```\n"+err.Error()+"\n```") {
		t.Errorf("docs/config.md does not show these problems:\n%v", err)
	}
}
