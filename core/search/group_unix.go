//go:build unix

package search

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a process the leader of a group: its children end with it, and Ctrl-C on a terminal is not for it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a group the hard way. It may be gone.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
