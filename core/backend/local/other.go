//go:build !linux

package local

import (
	"errors"
	"os"
	"os/exec"
)

// KeepIfAsked does nothing: Opener.Check refuses this system.
func KeepIfAsked() {}

type identity struct {
	PID   int
	Start string
}

func identify(int) (identity, bool) { return identity{}, false }

func (identity) alive() bool { return false }

func (identity) wait() {}

type found struct {
	identity
	value string
}

func withVariable(string) []found { return nil }

func startKeeper(string, []string) (*exec.Cmd, *os.File, error) {
	return nil, nil, errors.ErrUnsupported
}

func terminate(identity) {}

func kill(identity) {}

func lock(*os.File) bool { return true }

func unlock(*os.File) {}

func askToStop(identity) {}

func ours(os.FileInfo) bool { return true }

func openLogFile(path string) (*os.File, error) { return openPlain(path, os.O_RDONLY) }

var errUnchecked = errors.New("the store cannot be checked")

func checkStore(*os.File) error { return errUnchecked }
