package main

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// isolated is a command in a process group of its own, which ends as a whole, and for the superuser in a process namespace of
// its own: changed code that ends processes reaches only its own.
func isolated(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		c.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	}
	c.Cancel = func() error { endGroup(c); return nil }
	return c
}

// endGroup ends what is left of the process group of a command that was started.
func endGroup(c *exec.Cmd) {
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // none is left, mostly
	}
}
