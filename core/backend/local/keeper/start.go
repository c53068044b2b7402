package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Identity names a process for good: process ids are used again.
type Identity struct {
	PID   int    // id of the process
	Start string // which boot of the machine, and when in it
}

// Child is a keeper that this process started.
type Child struct {
	Identity
	command *exec.Cmd
	begin   *os.File
}

// ErrKilled means that a keeper was killed before its identity was known: the run is lost, which is no fault of its job.
var ErrKilled = errors.New("its keeper was killed")

// Start starts a keeper in the folder of a run. It does nothing until it is asked to begin, and ends if whoever started it
// ends before: so its identity can be recorded first.
func Start(dir string, o *Orders, environment []string) (*Child, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, ordersFile), text, 0o600); err != nil { // its only reader is yet to start
		return nil, err
	}
	command, begin, err := launch(dir, environment)
	if err != nil {
		return nil, err
	}
	id, alive := identify(command.Process.Pid)
	c := &Child{id, command, begin}
	if !alive {
		c.Dismiss()
		if command.ProcessState.ExitCode() < 0 {
			return nil, ErrKilled
		}
		return nil, fmt.Errorf("the keeper ended at once; see %s/keeper.log", dir)
	}
	return c, nil
}

// Begin gives the keeper its go-ahead.
func (c *Child) Begin() {
	_, _ = c.begin.Write([]byte{1}) // one that is gone is noticed
	_ = c.begin.Close()
}

// Dismiss ends a keeper that was not asked to begin, and returns when it is gone.
func (c *Child) Dismiss() {
	_ = c.begin.Close()
	c.Wait() // it ends without a go-ahead
}

// Wait returns when the keeper is gone, and nothing is left of it but its final report.
func (c *Child) Wait() { _ = c.command.Wait() } // the final report says how it went
