package keeper

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
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
		fmt.Fprintln(os.Stderr, "there is no room for the last word:", err) // it may be there by then
	}
	// Whatever the replicas leave behind becomes a child of the keeper, which ends it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	g := &gang{dir: dir, orders: &o, running: map[int]*exec.Cmd{}, ended: make(chan int), codes: make([]int, len(o.Replicas))}
	e := g.run(stop)
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

// gang is the replicas of a run.
type gang struct {
	dir     string // of the run
	orders  *Orders
	limits  limits
	output  output
	running map[int]*exec.Cmd // by rank
	ended   chan int          // ranks
	codes   []int
}

// run holds the replicas within their limits, and returns when nothing is left of them but their output.
func (g *gang) run(stop <-chan os.Signal) Exit {
	for rank := range g.codes {
		g.codes[rank] = -1
	}
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
				return Exit{Outcome: Failed, Reason: fmt.Sprintf("set the limits: %v", err), Codes: g.codes}
			}
			warn(fmt.Sprintf("%s: %v", NoLimits, err))
		}
	}
	e := g.hold(stop)
	endChildren()
	warn(g.output.end()...)
	if err := g.limits.remove(); err != nil {
		warn(fmt.Sprintf("a control group is left: %v", err))
	}
	e.Warnings = warnings
	return e
}

// hold starts the replicas and waits for them. The first to fail ends the others, and so does a stop. One that was asked to
// stop, and ends, did as it was told.
func (g *gang) hold(stop <-chan os.Signal) Exit {
	e := Exit{Outcome: Finished, Codes: g.codes}
	var overdue <-chan time.Time
	last := syscall.Signal(0) // sent
	send := func(s syscall.Signal) {
		if last != s {
			if last = s; s != askedToStop { // that one is for the keeper
				g.signal(s)
			}
			overdue = time.After(time.Duration(g.orders.GraceSeconds * float64(time.Second)))
		}
	}
	end := func(o Outcome, reason string) {
		if e.Outcome == Finished {
			e.Outcome, e.Reason = o, reason
			send(syscall.SIGTERM)
		}
	}
	for rank := range g.orders.Replicas {
		if err := g.start(rank); err != nil {
			end(Failed, fmt.Sprintf("start replica %d: %v", rank, err))
			break
		}
	}
	ask := func() {
		if e.Outcome == Finished {
			e.Outcome = Stopped
			send(askedToStop)
		}
	}
	if g.askedToStop() {
		ask()
	}
	for len(g.running) > 0 {
		select {
		case rank := <-g.ended:
			if g.askedToStop() {
				ask() // the signal is on its way
			}
			g.codes[rank] = exitCode(g.running[rank].ProcessState)
			delete(g.running, rank)
			if last == askedToStop {
				send(syscall.SIGTERM) // the others may not have been told
			}
			if code := g.codes[rank]; code != 0 {
				reason := fmt.Sprintf("replica %d exited with %d%s", rank, code, signalOf(code))
				if g.limits.exceeded(rank) {
					reason = fmt.Sprintf("replica %d exceeded its memory limit of %d MB", rank, g.orders.MemoryBytes/bytesInMB)
				}
				end(Failed, reason)
			}
		case s := <-stop:
			switch {
			case !g.works():
			case s == endNow:
				if e.Outcome == Finished {
					e.Outcome = Stopped
				}
				send(syscall.SIGKILL)
			case s == askedToStop:
				ask()
			case last == syscall.SIGKILL:
			case last == askedToStop:
				send(syscall.SIGTERM)
			default:
				end(Stopped, "")
			}
		case <-overdue:
			if last == askedToStop {
				send(syscall.SIGTERM)
			} else {
				send(syscall.SIGKILL)
			}
		}
	}
	return e
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
	g.running[rank] = c
	go func() {
		_ = c.Wait() // ProcessState tells
		g.ended <- rank
	}()
	return nil
}

// askedToStop reports whether the agent was asked to stop.
func (g *gang) askedToStop() bool {
	_, err := os.Lstat(filepath.Join(g.dir, stopFile))
	return err == nil
}

// works reports whether a replica is left that has not ended by itself.
func (g *gang) works() bool {
	for _, c := range g.running {
		if _, alive := identify(c.Process.Pid); alive {
			return true
		}
	}
	return false
}

// signal tells the groups of all replicas that run.
func (g *gang) signal(s syscall.Signal) {
	for _, c := range g.running {
		_ = syscall.Kill(-c.Process.Pid, s) // it may have ended
	}
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
