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
	run := backend.Run{Identity: identity, Config: string(resolved), Files: files, Fresh: fresh}
	if dir != "" {
		run.Dir = filepath.Join(dir, liveDir)
	}
	opener.For(run)
	return nil
}

// identityOf is the same for runs that decide alike: of one config, with the same inputs.
func identityOf(c *configs.Config, w *workload.Workload) (string, error) {
	alike := *c
	alike.Output = configs.Output{}
	if settings, ok := alike.Backend.Config.(interface{ Deciding() any }); ok {
		alike.Backend.Config = settings.Deciding()
	}
	resolved, err := alike.Resolved()
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
