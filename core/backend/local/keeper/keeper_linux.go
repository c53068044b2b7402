package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// IfAsked ends the program as a keeper if it was started as one. A program that starts keepers does it first, for it is them too.
// It ends by syscall.Exit: os.Exit takes a second where the race detector is on, for which the run would be taken to live on.
func IfAsked() {
	if dir := os.Getenv(Variable); dir != "" {
		syscall.Exit(keep(dir))
	}
}

// goAhead is the descriptor on which the scheduler allows a keeper to begin.
const goAhead = 3

// keep starts the replicas of a run once the scheduler has recorded the keeper, and stays until the last of their
// processes is gone.
func keep(dir string) int {
	runtime.LockOSThread()          // a parent's death signal is sent when the thread ends that started the child
	stop := make(chan os.Signal, 3) // one of each
	signal.Notify(stop, syscall.SIGTERM, askedToStop, endNow)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT) // unheeded here, and not inherited as ignored
	var o Orders
	if err := ReadFile(filepath.Join(dir, ordersFile), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	pipe := os.NewFile(goAhead, "go ahead")
	if n, _ := pipe.Read(make([]byte, 1)); n == 0 {
		return 0 // the scheduler died before it had recorded this run
	}
	_ = pipe.Close()
	if begun, err := os.OpenFile(filepath.Join(dir, begunFile), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err) // a full disk has room for an empty file, most likely
		return 1
	} else {
		_ = begun.Close() // nothing was written
	}
	word, err := newReserve(filepath.Join(dir, exitFile), len(o.Replicas))
	if err != nil {
		fmt.Fprintln(os.Stderr, "there is no room for the final report:", err) // it may be there by then
	}
	// Whatever the replicas leave behind becomes a child of the keeper, which ends it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	g := &gang{dir: dir, orders: &o, signals: stop, commands: make([]*exec.Cmd, len(o.Replicas)), ended: make(chan int)}
	e := g.run()
	if err := word.become(filepath.Join(dir, exitFile), e); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// askedToStop tells a keeper that the agent of its job was asked to stop: nobody is signalled before the grace is over.
const askedToStop = syscall.SIGUSR1

// endNow tells a keeper to kill its replicas at once. One of an earlier version dies of it, and its replicas with it.
const endNow = syscall.SIGUSR2

// gang is the replicas of a run as processes of this machine.
type gang struct {
	dir      string // of the run
	orders   *Orders
	signals  <-chan os.Signal // to the keeper
	limits   limits
	output   output
	commands []*exec.Cmd // by rank; nil for one that was not started
	ended    chan int    // ranks
	grace    <-chan time.Time
}

// run holds the replicas within their limits, and returns when nothing is left of them but their output.
func (g *gang) run() Exit {
	codes := slices.Repeat([]int{-1}, len(g.orders.Replicas))
	var warnings []string
	warn := func(list ...string) {
		for _, warning := range list {
			fmt.Fprintln(os.Stderr, warning)
		}
		warnings = append(warnings, list...)
	}
	if g.orders.limited() {
		var err error
		if g.limits, err = newLimits(g.orders); err != nil {
			if g.orders.Limits == LimitsRequired {
				return Exit{Outcome: Failed, Reason: fmt.Sprintf("set the limits: %v", err), Codes: codes}
			}
			warn(fmt.Sprintf("%s: %v", NoLimits, err))
		}
	}
	e := supervise(g, codes)
	endChildren()
	warn(g.output.end()...)
	if err := g.limits.remove(); err != nil {
		warn(fmt.Sprintf("a control group is left: %v", err))
	}
	e.Warnings = warnings
	return e
}

// next waits until a replica ended, the keeper got a signal, or a grace period is over.
func (g *gang) next() occurrence {
	select {
	case rank := <-g.ended:
		return occurrence{ended: true, rank: rank}
	case s := <-g.signals:
		switch s {
		case endNow:
			return occurrence{event: killOrdered}
		case askedToStop:
			return occurrence{event: agentAsked}
		default:
			return occurrence{event: stopOrdered}
		}
	case <-g.grace:
		return occurrence{event: graceOver}
	}
}

func (g *gang) beginGrace() {
	g.grace = time.After(time.Duration(g.orders.GraceSeconds * float64(time.Second)))
}

// start starts a replica in a process group of its own.
func (g *gang) start(rank int) error {
	r := &g.orders.Replicas[rank]
	c := exec.Command(g.orders.Command[0], g.orders.Command[1:]...)
	c.Dir, c.Env = g.orders.Dir, r.Environment
	var err error
	var ends [2]*os.File
	for i, path := range [...]string{r.Out, r.Err} {
		if ends[i], err = g.output.to(newLogFile(path, g.orders.LogBytes, g.orders.LogFiles, os.Stderr)); err != nil {
			return err
		}
		defer ends[i].Close()
	}
	c.Stdout, c.Stderr = ends[0], ends[1]
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := g.limits.start(c, rank); err != nil {
		return err
	}
	g.commands[rank] = c
	go func() {
		awaitEnd(c.Process.Pid)
		g.ended <- rank
	}()
	return nil
}

// awaitEnd returns when a child of this process has ended. It leaves it a zombie: no other process gets its number, which may
// be signalled still.
func awaitEnd(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return // another error is none: the child is there until it is collected
		}
	}
}

func (g *gang) collect(rank int) ending {
	c := g.commands[rank]
	_ = c.Wait() // ProcessState says how it went
	code := exitCode(c.ProcessState)
	switch {
	case code == 0:
		return ending{}
	case g.limits.exceeded(rank):
		return ending{code: code, reason: fmt.Sprintf("replica %d exceeded its memory limit of %d MB", rank, g.orders.MemoryBytes/bytesInMB)}
	}
	return ending{code, fmt.Sprintf("replica %d exited with %d%s", rank, code, signalOf(code)), stoppedBy(c.ProcessState)}
}

// stoppedBy is the signal that ended a process, if it is one by which processes are stopped and not one for a fault of their own; 0 for none.
func stoppedBy(s *os.ProcessState) syscall.Signal {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0
	}
	switch signal := status.Signal(); signal {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		return signal
	default:
		return 0
	}
}

func (g *gang) agentAsked() bool {
	_, err := os.Lstat(filepath.Join(g.dir, stopFile))
	return err == nil
}

func (g *gang) working(rank int) bool {
	_, alive := identify(g.commands[rank].Process.Pid)
	return alive
}

func (g *gang) signal(rank int, s syscall.Signal) {
	_ = syscall.Kill(-g.commands[rank].Process.Pid, s) // it may have ended
}

func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// endChildren kills what the replicas left behind.
func endChildren() {
	self := os.Getpid()
	for {
		children := 0
		for _, p := range processes() {
			if p.parent == self {
				children++
				_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may be a zombie
			}
		}
		if children == 0 {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// signalOf names the signal that a code stands for, as a remark: a program may exit with such a code by itself.
func signalOf(code int) string {
	if name := unix.SignalName(syscall.Signal(code - 128)); code > 128 && name != "" {
		return " (" + name + ")"
	}
	return ""
}
