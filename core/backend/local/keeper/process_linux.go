package keeper

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is what the system tells of one.
type process struct {
	pid, parent int
	state       byte
	start       string // in ticks since the system started
}

// identify returns the identity of a process, and whether it is there and more than a zombie.
func identify(pid int) (Identity, bool) {
	p, ok := readProcess(pid)
	if !ok || p.state == 'Z' || p.state == 'X' {
		return Identity{}, false
	}
	return Identity{pid, bootID() + "/" + p.start}, true
}

// Alive reports whether the process is there and more than a zombie.
func (id Identity) Alive() bool {
	now, ok := identify(id.PID)
	return ok && now == id
}

// AskToStop informs the keeper of the run in a folder that the agent of its job is about to be asked to stop: replicas that go on
// are signalled when the grace is over. A signal alone might come after the end of a replica that did as it was asked, or before
// the keeper takes any.
func (id Identity) AskToStop(dir string) {
	if f, err := os.OpenFile(filepath.Join(dir, stopFile), os.O_CREATE|os.O_WRONLY, 0o600); err == nil { // else the signal must do
		_ = f.Close() // nothing was written
	}
	id.signal(askedToStop)
}

// Terminate makes a keeper stop its replicas: by SIGTERM, and by SIGKILL when the grace is over.
func (id Identity) Terminate() { id.signal(syscall.SIGTERM) }

// EndNow makes a keeper kill its replicas, and all that they left behind, at once.
func (id Identity) EndNow() { id.signal(endNow) }

// Kill ends the process at once, and if it is a keeper its replicas with it.
func (id Identity) Kill() { id.signal(syscall.SIGKILL) }

// signal tells the process itself, and nobody who has its number by now.
func (id Identity) signal(s syscall.Signal) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }() // it was only signalled through
	}
	switch {
	case !id.Alive(): // asked once the descriptor holds on to the process
	case err == nil:
		_ = unix.PidfdSendSignal(fd, s, nil, 0) // it may have ended
	default: // the system has no such descriptors
		_ = syscall.Kill(id.PID, s) // it may have ended
	}
}

func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(text))
}

func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name of the program stands in parentheses, and may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const stateField, parentField, startField = 0, 1, 19
	if len(fields) <= startField {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(fields[parentField]))
	return process{pid: pid, parent: parent, state: fields[stateField][0], start: string(fields[startField])}, err == nil
}

// processes lists all processes.
func processes() []process {
	entries, _ := os.ReadDir("/proc") // without it nothing else works either
	var list []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			list = append(list, p)
		}
	}
	return list
}

// withVariable lists the live processes whose environment, as they were started, gives a variable a value.
func withVariable(name string) (list []holder) {
	for _, p := range processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if err != nil {
			continue // gone, or somebody else's
		}
		for entry := range bytes.SplitSeq(text, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
				if id, alive := identify(p.pid); alive {
					list = append(list, holder{id, string(value)})
				}
			}
		}
	}
	return list
}

// launch starts the process of a keeper, which waits for its go-ahead: a byte on the pipe.
func launch(dir string, environment []string) (*exec.Cmd, *os.File, error) {
	out, err := openForAppend(dir + "/keeper.log")
	if err != nil {
		return nil, nil, err
	}
	defer out.Close()
	wait, begin, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer wait.Close()
	c := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"quartet-keeper", dir}, Env: append([]string{Variable + "=" + dir}, environment...),
		Dir: "/", Stdout: out, Stderr: out, ExtraFiles: []*os.File{wait}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := c.Start(); err != nil {
		_ = begin.Close()
		return nil, nil, err
	}
	return c, begin, nil
}
