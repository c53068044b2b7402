package local

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// process is what the system tells of one.
type process struct {
	pid, parent int
	state       byte
	start       string // in ticks since the system started
}

// identity names a process for good: process ids are used again.
type identity struct {
	PID   int
	Start string // which boot of the machine, and when in it
}

// identify returns the identity of a process, and whether it is there and more than a zombie.
func identify(pid int) (identity, bool) {
	p, ok := readProcess(pid)
	if !ok || p.state == 'Z' || p.state == 'X' {
		return identity{}, false
	}
	return identity{pid, bootID() + "/" + p.start}, true
}

func (id identity) alive() bool {
	now, ok := identify(id.PID)
	return ok && now == id
}

// signal tells the process itself, and nobody who has its number by now.
func (id identity) signal(s syscall.Signal) {
	if id.alive() {
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

// found is a process that has a variable in its environment.
type found struct {
	identity
	value string
}

// withVariable lists the live processes whose environment, as they were started, gives a variable a value.
func withVariable(name string) (list []found) {
	for _, p := range processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if err != nil {
			continue // gone, or somebody else's
		}
		for entry := range bytes.SplitSeq(text, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
				if id, alive := identify(p.pid); alive {
					list = append(list, found{id, string(value)})
				}
			}
		}
	}
	return list
}

// startKeeper starts a keeper of a run, which waits for its go-ahead: a byte on the pipe.
func startKeeper(dir string, environment []string) (*exec.Cmd, *os.File, error) {
	out, err := openLog(dir + "/keeper.log")
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
		Path: "/proc/self/exe", Args: []string{"quartet-keeper", dir}, Env: append([]string{keeperVariable + "=" + dir}, environment...),
		Dir: "/", Stdout: out, Stderr: out, ExtraFiles: []*os.File{wait}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := c.Start(); err != nil {
		_ = begin.Close()
		return nil, nil, err
	}
	return c, begin, nil
}

// ours reports whether a file belongs to the user of this process.
func ours(info os.FileInfo) bool {
	owner, known := info.Sys().(*syscall.Stat_t)
	return known && int(owner.Uid) == os.Geteuid()
}

// openLogFile opens a log for reading, which may be anything by now: a pipe would hold up its reader, a link lead elsewhere.
func openLogFile(path string) (*os.File, error) {
	return openPlain(path, os.O_RDONLY|syscall.O_NOFOLLOW)
}

func askToStop(id identity) { id.signal(askedToStop) }

func terminate(id identity) { id.signal(syscall.SIGTERM) }

func kill(id identity) { id.signal(syscall.SIGKILL) }

// unlock gives up the lock of a file, also for those who still map it.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) } // a closed one has none
