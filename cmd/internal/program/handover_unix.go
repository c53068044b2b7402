//go:build unix

package program

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// replaceProcess puts a program in the place of this one, so that signals and the exit code are its own.
func replaceProcess(path string, args, environment []string) (code int, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return 0, err
	}
	err = syscall.Exec(path, append([]string{path}, args...), environment)
	return 0, fmt.Errorf("start %s: %w", path, err)
}

// exitCodeOf is the exit code of a process that ended, as shells tell it: 128 and the signal for one that was killed.
func exitCodeOf(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}
