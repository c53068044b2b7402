package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ownGroup makes a plugin the leader of a process group, which its children belong to: they end together, and Ctrl-C on
// a terminal is the host's to deal with.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a process group the hard way. It may be gone.
func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }

// killStrays ends the processes that left the group of the plugin and are still its own: those that inherited the
// variable with its folder. Without /proc it finds none.
func killStrays(folder string) {
	mark := []byte(envSocketFolder + "=" + folder + "\x00")
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		environment, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append(environment, 0), mark) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
