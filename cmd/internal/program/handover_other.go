//go:build !unix

package program

import "os"

// replaceProcess runs a program in a process of its own: this system cannot put one in the place of another.
func replaceProcess(path string, args, environment []string) (code int, err error) {
	return runChild(path, args, environment, nil)
}

func exitCodeOf(s *os.ProcessState) int { return s.ExitCode() }
