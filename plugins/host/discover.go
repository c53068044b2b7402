package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// PathVariable names the environment variable that lists plugin folders.
const PathVariable = "QUARTET_PLUGIN_PATH"

// filePrefix begins the name of every installed plugin.
const filePrefix = "quartet-plugin-"

// UserFolder returns the plugin folder of the user, whether it exists or not; empty when the user has no home.
func UserFolder() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "quartet", "plugins")
}

// Folders lists plugin folders in the order in which they are searched: those of --plugin-dir, those of PathVariable,
// those of the config, and the user's. The working directory is searched only if it is among them.
func Folders(flags []string, path string, config []string) []string {
	var folders []string
	for _, folder := range slices.Concat(flags, filepath.SplitList(path), config, []string{UserFolder()}) {
		if folder == "" {
			continue
		}
		if folder = filepath.Clean(folder); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// Installed is a plugin that the lock of its folder records.
type Installed struct {
	Entry
	Folder string // Folder that holds the plugin and the lock.
}

// File returns the path of the plugin.
func (p Installed) File() string { return filepath.Join(p.Folder, p.Path) }

// Binary returns what starts the plugin, and only the file that was installed.
func (p Installed) Binary() Binary {
	return Binary{Name: p.Name, Path: p.File(), SHA256: p.SHA256}
}

// Verify checks the file of the plugin against the lock, and that no other user can write it.
func (p Installed) Verify() error {
	if err := p.Binary().verify(); err != nil {
		return fmt.Errorf("plugin %q: %w", p.Name, err)
	}
	return nil
}

// Find reads the locks of folders. A plugin of an earlier folder hides one of the same name in a later folder. An error
// is a core.Diagnostics with the problems of all locks.
func Find(folders []string) ([]Installed, error) {
	var found []Installed
	var problems core.Diagnostics
	for _, folder := range folders {
		lock, err := ReadLock(folder)
		if ds := core.Diagnostics(nil); errors.As(err, &ds) {
			problems = append(problems, ds...)
			continue
		} else if err != nil {
			problems = append(problems, core.Diagnostic{Position: core.Position{File: folder}, Summary: err.Error()})
			continue
		}
		for _, e := range lock.Plugins {
			if !slices.ContainsFunc(found, func(p Installed) bool { return p.Name == e.Name }) {
				found = append(found, Installed{Entry: e, Folder: folder})
			}
		}
	}
	return found, problems.Err()
}

// Strays lists the files in folders that look like plugins but that no lock records: they are never started.
func Strays(folders []string) []string {
	var strays []string
	for _, folder := range folders {
		lock, _ := ReadLock(folder) // Find reports its problems
		entries, _ := os.ReadDir(folder)
		for _, file := range entries {
			locked := slices.ContainsFunc(lock.Plugins, func(e Entry) bool { return filepath.Clean(e.Path) == file.Name() })
			if strings.HasPrefix(file.Name(), filePrefix) && !locked {
				strays = append(strays, filepath.Join(folder, file.Name()))
			}
		}
	}
	return strays
}
