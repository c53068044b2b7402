//go:build !linux

package keeper

import (
	"errors"
	"os"
	"os/exec"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// IfAsked does nothing: there are no keepers on this system.
func IfAsked() {}

func launch(string, []string) (*exec.Cmd, *os.File, error) { return nil, nil, errors.ErrUnsupported }

func identify(int) (Identity, bool) { return Identity{}, false }

func withVariable(string) []holder { return nil }

// Alive reports false.
func (Identity) Alive() bool { return false }

// Wait returns at once.
func (Identity) Wait() {}

// AskToStop does nothing.
func (Identity) AskToStop(string) {}

// Terminate does nothing.
func (Identity) Terminate() {}

// EndNow does nothing.
func (Identity) EndNow() {}

// Kill does nothing.
func (Identity) Kill() {}

// CheckLimits says that there are none.
func CheckLimits() error { return errors.ErrUnsupported }

// OpenOutput opens a file of output for reading.
func OpenOutput(path string) (*os.File, error) { return inputfile.Open(path) }
