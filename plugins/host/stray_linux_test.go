package host_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/plugins/host"
)

// Of all processes, those that inherited the variable with the folder of a plugin are killed, and no others. In a world of
// processes of its own, for whoever gets this wrong kills everything.
func TestStraysAndNobodyElseAreKilled(t *testing.T) {
	c := exec.Command(os.Args[0], killStrays)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == noWorld || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) {
		t.Skip("a process namespace of its own is not permitted; run the tests as root")
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"its own: signal: killed", "another's: signal: terminated", "nobody's: signal: terminated"}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" {
		t.Errorf("ends of processes -want +got:\n%s", diff)
	}
}

// noWorld is the exit code of killAmongOthers where it sees other processes than those of its world.
const noWorld = 9

// killAmongOthers starts processes in its world, kills those of one plugin, and tells on stdout how each ended.
func killAmongOthers() int {
	if err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
	); err != nil {
		return noWorld
	}
	const folder = "/tmp/quartet-1"
	var all []*exec.Cmd
	for _, variable := range []string{"PLUGIN_UNIX_SOCKET_DIR=" + folder, "PLUGIN_UNIX_SOCKET_DIR=" + folder + "0", "HOME=" + folder} {
		c := exec.Command("/bin/sleep", "60")
		c.Env = []string{"A=b", variable, "TZ=UTC"}
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		all = append(all, c)
	}
	limit := time.AfterFunc(20*time.Second, func() { os.Exit(1) })
	defer limit.Stop()
	host.KillStrays(folder)
	for i, name := range []string{"its own", "another's", "nobody's"} {
		if i > 0 {
			_ = all[i].Process.Signal(syscall.SIGTERM) // whoever was killed before does not end by it
		}
		_ = all[i].Wait() // the state tells
		fmt.Printf("%s: %v\n", name, all[i].ProcessState)
	}
	return 0
}
