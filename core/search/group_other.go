//go:build !unix

package search

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup ends the process alone: there are no groups.
func killGroup(c *exec.Cmd) { _ = c.Process.Kill() }
