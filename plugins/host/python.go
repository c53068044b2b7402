package host

import (
	"bufio"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

var moduleNotFound = regexp.MustCompile(`^ModuleNotFoundError: No module named '([^']+)'`)

// missingModule is the module that a Python program could not import; empty when its last output names none.
func missingModule(finalOutput string) string {
	if match := moduleNotFound.FindStringSubmatch(finalOutput); match != nil {
		return match[1]
	}
	return ""
}

// packages names what to ask pip for, where that is not the module itself.
var packages = map[string]string{"google": "protobuf", "grpc": "grpcio", "sklearn": "scikit-learn", "yaml": "pyyaml"}

func howToInstall(module, python string) string {
	module, _, _ = strings.Cut(module, ".")
	if module == "quartet_plugin" {
		return fmt.Sprintf("run `%s -m pip install ./plugins/python` in a checkout of Quartet", python)
	}
	return fmt.Sprintf("run `%s -m pip install %s`", python, cmp.Or(packages[module], module))
}

// interpreterOf is the program that runs a script, by its first line.
func interpreterOf(script string) string {
	const usual = "python3"
	f, err := inputfile.Open(script)
	if err != nil {
		return usual
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return usual
	}
	python := words[0]
	if filepath.Base(python) == "env" {
		python = words[len(words)-1]
	}
	if !strings.HasPrefix(filepath.Base(python), "py") {
		return usual
	}
	return python
}
