//go:build linux

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// TestNewcomer runs the very lines of docs/kubernetes.md: three jobs on a cluster of its own, one of which grows while it trains.
func TestNewcomer(t *testing.T) {
	kubetest.Programs(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Try it on this machine\n")
	block := regexp.MustCompile("(?s)```sh [^\n]*\n(.*?)```").FindStringSubmatch(section)
	if block == nil {
		t.Fatal("docs/kubernetes.md has no lines to try")
	}
	if _, err := os.Stat(filepath.Join(root, ".bin", "kube")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("there is a cluster in .bin/kube: end it by make kube-down")
	}
	bash := exec.CommandContext(t.Context(), "bash", "-m", "-e", "-o", "pipefail")
	bash.Dir, bash.Stdin = root, strings.NewReader(block[1])
	bash.Env = append(os.Environ(), "KUBE_NODES=2", "KUBE_DEVICES=4")
	var stdout, stderr bytes.Buffer
	bash.Stdout, bash.Stderr = &stdout, &stderr
	t.Cleanup(func() {
		down := exec.Command("make", "kube-down") //nolint:noctx // the context of the test is over
		down.Dir = root
		if text, err := down.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		if err := os.RemoveAll(filepath.Join(root, "runs", "try-kubernetes")); err != nil {
			t.Error(err)
		}
	})
	err = bash.Run()
	t.Logf("%s%s", stdout.String(), stderr.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^short completed$`, `(?m)^long completed$`, `(?m)^elastic completed$`,
		`(?m)^elastic-\S+-r1-0 .* Succeeded *$`, `(?m)^elastic-\S+-r1-1 .* Succeeded *$`, // it grew, and its first pod stayed
		`3 of 3 completed`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout.String()) {
			t.Errorf("nothing like %s", want)
		}
	}
	if regexp.MustCompile(`(?m)^elastic-\S+-r2-`).MatchString(stdout.String()) {
		t.Error("it was started again to be resized")
	}
}
