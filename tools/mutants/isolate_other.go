//go:build !linux

package main

import (
	"context"
	"os/exec"
)

func isolated(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}

// endGroup does nothing: there is no process group.
func endGroup(*exec.Cmd) {}
