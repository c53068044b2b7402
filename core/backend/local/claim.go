package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// claims are the devices that a scheduler took for its run: a locked file for each, which names the folder of the run. Only
// devices that were discovered are claimed, for only they are known to be there once. Schedulers of other users are not seen.
type claims []*os.File

// claim takes the devices of the run for this scheduler.
func (b *Backend) claim() (err error) {
	if b.config.Devices != discoveredDevices {
		return nil
	}
	b.claims, err = claim(filepath.Join(os.TempDir(), fmt.Sprintf("quartet-devices-%d", os.Geteuid())), b.dir, b.devices.all(), b.lockWait)
	return err
}

// claim takes devices for a run. One that a scheduler of the same run holds is waited for so long.
func claim(folder, run string, names []string, wait time.Duration) (c claims, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("claim devices: %w", err)
	}
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() || !ours(info) {
		return nil, errors.Join(err, fmt.Errorf("claim devices: folder %q is another user's", folder))
	}
	var found core.Diagnostics
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(folder, claimFile(name)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("claim device %q: %w", name, err), c.release())
		}
		c = append(c, f)
		free, owner := lock(f), readOwner(f)
		for left := wait; !free && owner == run && left > 0; left -= lookAgain { // a scheduler of this run that is just ending
			time.Sleep(lookAgain)
			free, owner = lock(f), readOwner(f)
		}
		switch {
		case !free:
			found = append(found, core.Diagnostic{
				Path: "cluster.nodes", Summary: fmt.Sprintf("device %s is used by the scheduler of %s", name, owner),
				Hint: "end that run, or declare fewer devices and set CUDA_VISIBLE_DEVICES to those of this run",
			})
			continue
		case owner != "" && owner != run && len(keeper.Find(filepath.Join(owner, "jobs"))) > 0:
			found = append(found, core.Diagnostic{
				Path: "cluster.nodes", Summary: fmt.Sprintf("device %s was given to %s, whose jobs run on without a scheduler", name, owner),
				Hint: "run that one again, to its end; --fresh ends its jobs",
			})
			continue
		}
		if err := errors.Join(f.Truncate(0), writeAt(f, run)); err != nil {
			return nil, errors.Join(fmt.Errorf("claim device %q: %w", name, err), c.release())
		}
	}
	if err := found.Err(); err != nil {
		return nil, errors.Join(err, c.release())
	}
	return c, nil
}

// claimFile is the file of a device. Old drivers call instances of MIG by paths.
func claimFile(name string) string {
	return strings.ReplaceAll(filepath.Clean(name), string(filepath.Separator), "_")
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func readOwner(f *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<12)) // what cannot be read names nobody
	return strings.TrimSpace(string(text))
}

// release gives the devices up.
func (c claims) release() error {
	var errs []error
	for _, f := range c {
		unlock(f)
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func (b *Backend) unclaim() error { return b.claims.release() }
