package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/manifests"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// app is one invocation, with the commands of this package as methods.
type app struct{ *cli.App }

// Commands are for who installs Quartet on a cluster.
func Commands(invocation *cli.App) []*cobra.Command {
	a := &app{invocation}
	return []*cobra.Command{cli.Group("kube", "Install Quartet on a Kubernetes cluster", a.manifestsCommand(), a.crdCommand())}
}

func (a *app) crdCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "crd",
		Short: "Print the definition of training jobs",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.RefuseOtherFormats(c, "YAML"); err != nil {
				return err
			}
			_, err := a.Stdout.Write(trainingjob.Definition())
			return err
		},
	}
}

// chartVersion is that of the chart where the program has none of its own.
const chartVersion = "0.0.0"

func (a *app) manifestsCommand() *cobra.Command {
	var o manifests.Options
	var config, kustomize, chart string
	c := &cobra.Command{
		Use:   "manifests",
		Short: "Print everything that installs the controller, or write it for Kustomize or Helm",
		Long: `Prints everything that installs the controller, as one stream of YAML in the order in which it must be
applied. It asks no cluster, and the same options give the same bytes. With --kustomize or --chart it
writes a folder instead, whose overlays and values have these options.`,
		Example: "  quartet kube manifests --image registry.example.com/quartet:0.1.0 | kubectl apply -f -\n  quartet kube manifests --chart .",
		Args:    cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVar(&o.Namespace, "namespace", manifests.DefaultNamespace, "where it runs")
	flags.StringVar(&o.Image, "image", manifests.DefaultImage, "reference of the image")
	flags.StringVar(&config, "config", "", "file of the composition, with backend: {type: kubernetes} (default: first come, first served)")
	flags.IntVar(&o.Replicas, "replicas", manifests.DefaultReplicas, "controllers: one leader, the others on standby")
	flags.StringVar(&o.AcceleratorResource, "accelerator-resource", "", "extended resource that counts devices (default: what the config says)")
	flags.BoolVar(&o.DRA, "dra", false, "it may allocate resource claims")
	flags.BoolVar(&o.Scaler, "scaler", false, "it may ask Karpenter for nodes")
	flags.BoolVar(&o.Monitoring, "monitoring", false, "with the dashboard of Grafana")
	flags.StringVar(&kustomize, "kustomize", "", "write a tree for Kustomize into this folder")
	flags.StringVar(&chart, "chart", "", "write a Helm chart into this folder")
	for _, tree := range [...]string{"kustomize", "chart"} {
		for _, other := range [...]string{"namespace", "image", "config", "replicas", "accelerator-resource", "dra", "scaler", "monitoring"} {
			c.MarkFlagsMutuallyExclusive(tree, other)
		}
	}
	c.MarkFlagsMutuallyExclusive("kustomize", "chart")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := a.RefuseOtherFormats(c, "YAML"); err != nil {
			return err
		}
		if flags.Changed("replicas") && o.Replicas == 0 { // which stands for the default
			return cli.Problem("--replicas", "0 replicas", "use 1 or more: one leads, the others stand by")
		}
		o.CRD = trainingjob.Definition()
		switch {
		case kustomize != "":
			files, err := manifests.Kustomize(o.CRD)
			return a.writeTree(kustomize, files, err)
		case chart != "":
			version := cli.ReadBuild().Version
			files, err := manifests.Chart(version, o.CRD)
			if _, wrong := errors.AsType[core.Diagnostics](err); wrong { // it is built from sources that have no version
				files, err = manifests.Chart(chartVersion, o.CRD)
			}
			return a.writeTree(chart, files, err)
		}
		if config != "" {
			text, err := inputfile.Read(config, inputfile.Document)
			if err != nil {
				return cli.Problem(config, "cannot be read: "+errors.Unwrap(err).Error(), "")
			}
			if o.Config = text; len(text) == 0 {
				return cli.Problem(config, "is empty", "")
			}
		}
		text, err := manifests.Render(o)
		if err != nil {
			return namingFlags(config, err)
		}
		_, err = a.Stdout.Write(text)
		return err
	}
	return c
}

// namingFlags names the flags of options that are wrong, and the file of the config.
func namingFlags(config string, err error) error {
	problems, is := errors.AsType[core.Diagnostics](err)
	if !is {
		return err
	}
	for i, d := range problems {
		if path, inside := strings.CutPrefix(d.Path, "config."); inside {
			problems[i].Position.File, problems[i].Path = config, path
			continue
		}
		flag := map[string]string{
			"namespace": "--namespace", "image": "--image", "replicas": "--replicas", "accelerator_resource": "--accelerator-resource", "config": "--config",
		}[d.Path]
		if flag != "" {
			problems[i].Position.File, problems[i].Path = flag, ""
		}
	}
	return problems.Err()
}

// writeTree writes files below a folder, none of which may be there.
func (a *app) writeTree(folder string, files []manifests.File, err error) error {
	if err != nil {
		return err
	}
	var problems core.Diagnostics
	for _, f := range files {
		if name := filepath.Join(folder, filepath.FromSlash(f.Name)); exists(name) {
			problems = append(problems, core.Diagnostic{Position: core.Position{File: name}, Summary: "is there already", Hint: "write into another folder, or remove it"})
		}
	}
	if len(problems) > 0 {
		return problems.Err()
	}
	for _, f := range files {
		name := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("write %q: %w", name, err)
		}
		if err := os.WriteFile(name, f.Content, 0o644); err != nil { //nolint:gosec // manifests hold no secrets
			return fmt.Errorf("write %q: %w", name, err)
		}
	}
	a.Note("wrote %d files below %s", len(files), folder)
	return nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
