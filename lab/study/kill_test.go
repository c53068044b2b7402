package study_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/study"
)

// studyVariable names the folder of a study that this program runs instead of its tests.
const studyVariable = "QUARTET_TEST_STUDY"

func TestMain(m *testing.M) {
	dir, asked := os.LookupEnv(studyVariable)
	if !asked {
		os.Exit(m.Run())
	}
	s, err := study.Parse("small.yaml", "small", []byte(small))
	if err == nil {
		var r *study.Result
		if r, err = study.Execute(context.Background(), s, options(dir)); err == nil && r.Missing+r.Failed == 0 {
			os.Exit(0)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A study that is killed twenty times comes to the same bytes.
func TestKilledStudyGoesOn(t *testing.T) {
	whole := t.TempDir()
	execute(t, small, options(whole))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	killed := 0
	start := func() *exec.Cmd {
		c := exec.Command(self)
		c.Env = append(os.Environ(), studyVariable+"="+dir)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 20 {
		c := start()
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		if c.Process.Kill() == nil && c.Wait() != nil {
			killed++
		}
	}
	if err := start().Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tables(t, whole), tables(t, dir)); diff != "" {
		t.Errorf("after %d kills (-want +got):\n%s", killed, diff)
	}
}
