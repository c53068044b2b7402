package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Install starts a plugin to read its description, copies it into a folder, and records it in the folder's lock, in place of another
// version of it. reserved reports the component ids that a plugin cannot have. Every user who can write the folder decides what runs.
func Install(ctx context.Context, b Binary, folder string, reserved func(id string) bool) (Installed, error) {
	err := checkExecutable(b.Path)
	var sum string
	if err == nil {
		sum, err = HashFile(b.Path)
	}
	if err != nil {
		return Installed{}, fmt.Errorf("install plugin: %w", err)
	}
	about, err := b.Describe(ctx)
	if err != nil {
		return Installed{}, err
	}
	lock, err := ReadLock(folder)
	if err != nil {
		return Installed{}, err
	}
	e := about.entry(sum)
	previous := lock.find(e.Name)
	lock.put(e)
	problems := lock.check()
	for _, c := range about.Components {
		if reserved(c.ID()) {
			problems = append(problems, core.Diagnostic{
				Summary: fmt.Sprintf("%q is built in, and a plugin cannot replace it", c.ID()), Hint: "give the component a type of its own",
			})
		}
	}
	if len(problems) > 0 {
		for i := range problems {
			problems[i].Position, problems[i].Path = core.Position{File: b.Path}, ""
		}
		return Installed{}, problems
	}
	p := Installed{Entry: e, Folder: folder}
	if err := p.copyFrom(b.Path); err != nil {
		return Installed{}, fmt.Errorf("install plugin %q: %w", e.Name, err)
	}
	if err := lock.Write(folder); err != nil {
		return Installed{}, err
	}
	if previous != nil && previous.Path != e.Path {
		return p, Installed{Entry: *previous, Folder: folder}.delete()
	}
	return p, nil
}

// copyFrom puts the file of the plugin into its folder.
func (p Installed) copyFrom(path string) error {
	if err := os.MkdirAll(p.Folder, 0o755); err != nil {
		return err
	}
	source, err := inputfile.Open(path)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := replaceFile(p.File(), source, 0o755); err != nil {
		return err
	}
	if err := p.Verify(); err != nil {
		return errors.Join(err, p.delete()) // it changed while it was installed, or the folder is open to others
	}
	return nil
}

func (p Installed) delete() error {
	if err := os.Remove(p.File()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// entry records the description of a plugin for the machine that we run on.
func (d *Description) entry(sha256 string) Entry {
	e := Entry{
		Name: d.Name, Version: d.Version, Protocol: d.Protocol, SHA256: sha256,
		Path: fmt.Sprintf("%s%s_%s_x%d_%s_%s", filePrefix, d.Name, d.Version, wire.Protocol, runtime.GOOS, runtime.GOARCH),
	}
	for _, c := range d.Components {
		e.Components = append(e.Components, LockedComponent{Stage: wire.StageName(c.Stage), Type: c.Type, Summary: c.Summary})
	}
	return e
}

func (l *Lock) find(name string) *Entry {
	i := slices.IndexFunc(l.Plugins, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	found := l.Plugins[i]
	return &found
}

// Remove deletes a plugin from the lock of a folder, and its file.
func Remove(folder, name string) error {
	lock, err := ReadLock(folder)
	if err != nil {
		return err
	}
	e := lock.find(name)
	if e == nil {
		return fmt.Errorf("there is no plugin %q in %s", name, filepath.Join(folder, LockFile))
	}
	lock.remove(name)
	if err := lock.Write(folder); err != nil {
		return err
	}
	return Installed{Entry: *e, Folder: folder}.delete()
}
