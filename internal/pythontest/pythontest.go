// Package pythontest finds the Python with which tests run plugins.
package pythontest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Variable names the environment variable that says which Python to use. Tests that find none that serves skip, unless
// it is set: then they fail, so that a broken environment cannot pass for a tested one.
const Variable = "QUARTET_PYTHON"

// Find returns the path of a Python that has what the SDK needs, empty where there is none. It is an error when that
// was promised.
func Find() (path string, err error) {
	name, promised := os.LookupEnv(Variable)
	if !promised || name == "" {
		name, promised = "python3", false
	}
	path, err = exec.LookPath(name)
	if err == nil {
		var out []byte
		if out, err = exec.Command(path, "-c", "import grpc, google.protobuf").CombinedOutput(); err == nil {
			return path, nil
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		err = fmt.Errorf("%s cannot run the SDK: %s", name, lines[len(lines)-1])
	}
	if promised {
		return "", fmt.Errorf("%s: %w", Variable, err)
	}
	return "", nil
}

// Require returns the path that Find does. Without one the test skips, or fails where one was promised.
func Require(t testing.TB) string {
	t.Helper()
	path, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if path == "" {
		t.Skip("no python3 with grpcio and protobuf; " + Variable + " may name one, and make python installs one")
	}
	return path
}
