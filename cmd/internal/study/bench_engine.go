package study

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/lab/study"
)

// engineFlags say where the shards of a study run.
type engineFlags struct {
	on     string
	shards int
	image  string
	claim  string
	kube   cli.KubeFlags
}

var engines = []string{"slurm", "kubernetes"}

func (f *engineFlags) register(a *app, c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.on, "on", "", "engine that runs the shards: slurm (an array job, submitted where there is sbatch) or kubernetes (an indexed Job, submitted with --context or --kubeconfig)")
	flags.IntVar(&f.shards, "shards", 4, "with --on, number of shards")
	flags.StringVar(&f.image, "image", "", "with --on kubernetes, container image that holds quartet")
	flags.StringVar(&f.claim, "claim", "", "with --on kubernetes, volume claim that holds the working folder")
	flags.StringVar(&f.kube.Context, "context", "", "with --on kubernetes, submit the shards to the cluster of this context of the kubeconfig")
	flags.StringVar(&f.kube.Kubeconfig, "kubeconfig", "", "with --on kubernetes, submit the shards to the cluster of this kubeconfig")
	flags.StringVarP(&f.kube.Namespace, "namespace", "n", "", "with --context or --kubeconfig, namespace of the shards (default: that of the context)")
	cli.MustComplete(c, "on", engines)
	f.kube.CompleteContexts(a.App, c)
}

// submit writes what the engine runs the shards by.
func (f *engineFlags) submit(ctx context.Context, a *app, s *study.Study, dir string, args []string, renamed bool) error {
	if len(args) == 0 {
		return cli.Problem("--on", "shards are of a study file", "write one; docs/studies.md has examples")
	}
	if err := f.kube.Check(); err != nil {
		return err
	}
	if f.kube.Meant() && f.on != "kubernetes" {
		return cli.Problem("--context, --kubeconfig", "are for --on kubernetes", "")
	}
	if f.shards < 1 {
		return cli.Problem("--shards", fmt.Sprintf("must be at least 1, got %d", f.shards), "")
	}
	if s.Seeds.Until != nil {
		return cli.Problem(args[0], "seeds.until: shards cannot know how many seeds suffice", "give a count only")
	}
	job := study.Shards{
		Name: s.Name, Study: args[0], Rename: renamed, Plugins: a.PluginDirs, Out: filepath.Dir(dir), Dir: dir, Count: f.shards, Image: f.image, Claim: f.claim,
	}
	switch f.on {
	case "slurm":
		return f.slurm(ctx, a, job)
	case "kubernetes":
		if f.image == "" || f.claim == "" {
			return cli.Problem("--on", "kubernetes needs --image and --claim", "")
		}
		path := filepath.Join(dir, "job.yaml")
		if err := writeIn(dir, path, job.Kubernetes()); err != nil {
			return err
		}
		if !f.kube.Meant() {
			a.Note("wrote %s: submit it with \"kubectl apply -f %s\", and join the shards with \"%s\"", path, study.ShellQuoted(path), job.Join())
			return nil
		}
		name, err := a.Engine.Start(ctx, f.kube.Access, a.Note, job.Kubernetes())
		if err != nil {
			return err
		}
		a.Note("submitted %s as job %s; when it has ended, join the shards with \"%s\"", path, name, job.Join())
		return nil
	}
	return cli.Problem("--on", fmt.Sprintf("unknown engine %q", f.on), "valid engines: "+strings.Join(engines, ", "))
}

func (f *engineFlags) slurm(ctx context.Context, a *app, job study.Shards) error {
	path := filepath.Join(job.Dir, "slurm.sh")
	if err := writeIn(job.Dir, path, job.Slurm()); err != nil {
		return err
	}
	join := fmt.Sprintf("join the shards with \"%s\"", job.Join())
	sbatch, err := exec.LookPath("sbatch")
	if err != nil {
		a.Note("wrote %s: submit it with \"sbatch %s\", and %s", path, study.ShellQuoted(path), join)
		return nil
	}
	c := exec.CommandContext(ctx, sbatch, path)
	c.Stdout, c.Stderr = a.Stderr, a.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("sbatch %s: %w", path, err)
	}
	a.Note("submitted %s; when it has ended, %s", path, join)
	return nil
}

func writeIn(dir, path string, content []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
