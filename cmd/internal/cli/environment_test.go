package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/configs"
)

// Every variable that the code, the Makefile or the checks of this repository name is one of a config, or known as ours: nobody is
// told that nothing reads it.
func TestEveryVariableOfOursIsKnown(t *testing.T) {
	// Those of processes that load no config and see no environment but that which their parent makes.
	private := []string{"QUARTET_KEEPER", "QUARTET_STAND_IN", "QUARTET_CHECK_STORE", "QUARTET_TEST_LIBRARY"}
	known := slices.Concat(ownVariables(), private)
	name := regexp.MustCompile(`\bQUARTET_[A-Z_]*[A-Z]\b`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == ".bin" || d.Name() == "testdata") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		source := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		if !source && d.Name() != "Makefile" && filepath.Base(filepath.Dir(path)) != ".ci" {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range name.FindAllString(string(text), -1) {
			if strays := configs.StrayVariables([]string{found + "=x"}, known); len(strays) > 0 {
				t.Errorf("%s: %v", path, strays)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
