package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// liveDir is the folder of a backend of real machines, within that of its run.
const liveDir = "live"

// settle tells a backend of real machines what it is opened for.
func settle(opener backend.Durable, c *configs.Config, w *workload.Workload, dir string, files []core.FileRead, fresh bool) error {
	resolved, err := placeless(c).Resolved()
	if err != nil {
		return err
	}
	identity, err := identityOf(c, w)
	if err != nil {
		return err
	}
	run := backend.Run{Identity: identity, Config: string(resolved), Files: files, Program: ReadBuild().program(), Fresh: fresh, Differs: differsFrom(c)}
	if dir != "" {
		run.Dir = filepath.Join(dir, liveDir)
	}
	opener.For(run)
	return nil
}

// differsFrom returns what lists the settings that decide in which a recorded config is not as this one. Both are read by this program: a setting that
// has come since is at its default in the recorded one.
func differsFrom(c *configs.Config) func(recorded string) ([]string, error) {
	return func(recorded string) ([]string, error) {
		before, err := c.Reread([]byte(recorded))
		if err != nil {
			return nil, err
		}
		here, err := deciding(c)
		if err != nil {
			return nil, err
		}
		there, err := deciding(before)
		if err != nil {
			return nil, err
		}
		return configs.Differ(here, there)
	}
}

// deciding is the part of a config that decisions depend on, resolved.
func deciding(c *configs.Config) ([]byte, error) {
	alike := *c
	alike.Output = configs.Output{}
	if settings, ok := alike.Backend.Config.(interface{ Deciding() any }); ok {
		alike.Backend.Config = settings.Deciding()
	}
	return alike.Resolved()
}

// identityOf is the same for runs that decide alike: of one config, with the same inputs.
func identityOf(c *configs.Config, w *workload.Workload) (string, error) {
	resolved, err := deciding(c)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(resolved)
	for _, in := range w.Inputs {
		fmt.Fprintln(sum, in.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
