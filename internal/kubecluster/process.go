//go:build linux

package kubecluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Process is a program that runs.
type Process struct {
	Path  string   // of the program
	Args  []string // of the program
	Log   string   // path of the file with its output
	PID   int      // number of the process
	Began string   // when, as the kernel counts: another process may get the number of one that ended
}

// start starts the program, whose output goes on in its log.
func (p *Process) start(dir string, tied bool) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(p.Path, p.Args...)
	c.Dir, c.Stdout, c.Stderr = dir, log, log
	c.SysProcAttr = attributes(tied)
	if err := c.Start(); err != nil {
		return err
	}
	p.PID = c.Process.Pid
	p.Began, _ = began(p.PID)
	go func() { _ = c.Wait() }() // so that it is gone when it ended
	return nil
}

// alive reports whether the process that was started runs.
func (p *Process) alive() bool {
	now, state := began(p.PID)
	return p.PID > 0 && now != "" && now == p.Began && state != "Z"
}

func (p *Process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for range 10_000 {
		if !p.alive() {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("process %d of %s does not end", p.PID, p.Path)
}

func (p *Process) pause() error  { return syscall.Kill(p.PID, syscall.SIGSTOP) }
func (p *Process) resume() error { return syscall.Kill(p.PID, syscall.SIGCONT) }

// lastWords is the end of the log.
func (p *Process) lastWords() string {
	content, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(content[max(0, len(content)-most):])
}

// began is when a process began, in ticks since the kernel did, and its state; both empty when there is none.
func began(pid int) (ticks, state string) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", ""
	}
	// The name of the program may hold anything: the fields after it are counted from its closing parenthesis.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) < 20 {
		return "", ""
	}
	return string(fields[19]), string(fields[0])
}

// attributes start a process in a session of its own, so that an interrupt of the terminal is not for it.
func attributes(tied bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if tied {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}
