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
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	for end := time.Now().Add(3 * time.Second); alive(plugin); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(plugin, syscall.SIGKILL)
			t.Fatal("the plugin still runs 3 s after its host was killed")
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
