//go:build linux

package kubecluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The version of Kubernetes of which the programs are. The module of tools/controlplane pins it.
const (
	kubernetes = "v1.36.3"
	kwok       = "0.8.0"
)

// The programs of a control plane.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	nodes             = "kwok"
	kubectl           = "kubectl"
	scheduler         = "kube-scheduler" // for comparison only
)

// programs are packages by the name of their binary, in the order in which each uses most of what was compiled before.
var programs = []struct{ name, pkg string }{
	{etcd, "go.etcd.io/etcd/server/v3"},
	{apiServer, "k8s.io/kubernetes/cmd/kube-apiserver"},
	{nodes, "sigs.k8s.io/kwok/cmd/kwok"},
	{controllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{scheduler, "k8s.io/kubernetes/cmd/kube-scheduler"},
	{kubectl, "k8s.io/kubernetes/cmd/kubectl"},
}

// Missing names the programs of a control plane that a folder lacks.
func Missing(bin string) (names []string) {
	for _, p := range programs {
		if info, err := os.Stat(filepath.Join(bin, p.name)); err != nil || !info.Mode().IsRegular() {
			names = append(names, p.name)
		}
	}
	return names
}

const (
	stampFile  = "built-of"
	stagesFile = "stages.yaml"
)

// Build compiles the programs of a module into a folder, unless what is there was built of the same. It takes some seven minutes
// on two cores the first time, and seconds when the compiler remembers. It logs what it does.
func Build(ctx context.Context, module, bin string, progress io.Writer) error {
	stamp, err := stampOf(module)
	if err != nil {
		return err
	}
	if built, err := os.ReadFile(filepath.Join(bin, stampFile)); err == nil && string(built) == stamp {
		return nil
	}
	if bin, err = filepath.Abs(bin); err != nil { // the compiler runs in the folder of the module
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(kubernetes, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	flags := "-s -w"
	for _, set := range [...]string{
		"k8s.io/component-base/version.gitVersion=" + kubernetes, "k8s.io/component-base/version.gitMajor=" + major,
		"k8s.io/component-base/version.gitMinor=" + minor, "k8s.io/client-go/pkg/version.gitVersion=" + kubernetes,
		"sigs.k8s.io/kwok/pkg/consts.Version=" + kwok,
	} {
		flags += " -X " + set
	}
	for _, p := range programs {
		fmt.Fprintln(progress, "building", p.name)
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", filepath.Join(bin, p.name), p.pkg)
		c.Dir, c.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		c.Stdout, c.Stderr = progress, progress
		if err := c.Run(); err != nil {
			return fmt.Errorf("build %s: %w", p.name, errors.Join(ctx.Err(), err))
		}
	}
	if err := writeStages(ctx, module, filepath.Join(bin, stagesFile)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bin, stampFile), []byte(stamp), 0o644)
}

// stampOf identifies what programs are built of.
func stampOf(module string) (string, error) {
	sum := sha256.New()
	for _, name := range [...]string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("the module of the control plane: %w", err)
		}
		sum.Write(content)
	}
	sum.Write([]byte(ownStages))
	return fmt.Sprintf("%x\n", sum.Sum(nil)), nil
}

// writeStages joins KWOK's stages of nodes with ours of pods.
func writeStages(ctx context.Context, module, to string) error {
	c := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	c.Dir, c.Env = module, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("find the module of KWOK: %w", err)
	}
	all := ""
	for _, name := range [...]string{"fast/node-initialize.yaml", "heartbeat-with-lease/node-heartbeat-with-lease.yaml"} {
		stage, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "kustomize", "stage", "node", filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("KWOK's stages: %w", err)
		}
		all += string(stage) + "\n---\n"
	}
	return os.WriteFile(to, []byte(all+ownStages), 0o644)
}
