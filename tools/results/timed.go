package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// spent is what a process took of the machine.
type spent struct {
	cpu       time.Duration // user and system time
	peakBytes int64         // of memory
}

// timed runs a composition in a process of its own and measures it. This is no run of a study: those share a process with others, and
// what is kept of them leaves out what differs from one time to the next. It is used for the tables speed-processes and pollux-cpu,
// and for the column of processor times of gavel-continuous.
func (b *bench) timed(r run) (s spent, err error) {
	dir, err := os.MkdirTemp("", "quartet-timed")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"simulate", "-q", "-o", "json", "--out", dir, "-f", filepath.Join("configs", r.config)}
	for _, set := range r.sets {
		args = append(args, "--set", set)
	}
	var stderr bytes.Buffer
	command := exec.Command(b.quartet, args...)
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return s, fmt.Errorf("%v: %w\n%s", args, err, stderr.String())
	}
	s.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	if used, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.peakBytes = used.Maxrss << 10 // Linux counts in KiB
	}
	return s, nil
}
