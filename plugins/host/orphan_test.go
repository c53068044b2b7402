package host_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNoPluginOutlivesItsHost kills a host the hard way.
func TestNoPluginOutlivesItsHost(t *testing.T) {
	host := exec.Command(os.Args[0], hostPlugin)
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the host told no process: %v", err)
	}
	plugin, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(plugin) {
		t.Fatalf("plugin process %d, error %v", plugin, err)
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", plugin))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\x00"+string(environment), "\x00PLUGIN_UNIX_SOCKET_DIR=")
	sockets, _, _ := strings.Cut(rest, "\x00")
	if _, err := os.Stat(sockets); err != nil {
		t.Fatalf("the folder of the plugin's socket: %v", err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()                                              // it was killed
	defer func() { _ = syscall.Kill(plugin, syscall.SIGKILL) }() // it has ended, usually
	eventually(t, func() error {
		if alive(plugin) {
			return fmt.Errorf("plugin process %d still runs after its host was killed", plugin)
		}
		return nil
	})
	if _, err := os.Stat(sockets); !os.IsNotExist(err) {
		t.Errorf("the folder %s of the plugin's socket is left over: %v", sockets, err)
	}
}

// patience is how long a test waits for what must come, on a busy machine too.
const patience = 2 * time.Minute

// eventually waits until a check finds nothing missing.
func eventually(t *testing.T, missing func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := missing()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: %v", patience, err)
		}
	}
}

// alive reports whether a process runs; one that ended and that nobody waits for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(status), ") Z ")
}
