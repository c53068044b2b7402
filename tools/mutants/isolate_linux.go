package main

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// isolated is a command in a world of processes of its own where it may have one: changed code that ends processes then
// reaches none but its own.
func isolated(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	}
	return c
}
