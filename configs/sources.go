package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/viper"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// FileName is the name of the config that is found without being named.
const FileName = "quartet.yaml"

// FileVariable is the variable of the environment that names the config when no flag does.
const FileVariable = variablePrefix + "CONFIG"

// variablePrefix begins the names of the variables of the environment that set something.
const variablePrefix = "QUARTET_"

// Discover finds the config to load when none is named: that of $QUARTET_CONFIG, quartet.yaml in the working folder, or
// quartet/quartet.yaml in the user's folder of configs. The first of them is taken alone; they are not laid over each other.
// Empty when there is none. One that is there and is no file to be read is an error: the next is not taken in its place.
func Discover() (path string, err error) {
	if path := os.Getenv(FileVariable); path != "" {
		return path, nil
	}
	candidates := []string{FileName}
	if user, err := os.UserConfigDir(); err == nil {
		candidates = append(candidates, filepath.Join(user, "quartet", FileName))
	}
	for _, path := range candidates {
		switch there, err := readable(path); {
		case err != nil:
			return "", core.Diagnostics{unreadable(path, err)}
		case there:
			return path, nil
		}
	}
	return "", nil
}

// readable reports whether there is a file; it is an error when what is there is none, or cannot be opened.
func readable(path string) (there bool, err error) {
	_, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, errors.New("it is a link to a file that does not exist")
	case err != nil:
		return true, err
	case info.IsDir():
		return true, errors.New("it is a folder")
	}
	file, err := inputfile.Open(path)
	if err != nil {
		return true, err
	}
	return true, file.Close()
}

// bound lists the keys that the environment may set: the scalars of a config that belong to no component.
func bound() []core.Field {
	f := File{}
	var list []core.Field
	var walk func(prefix string, fields []core.Field)
	walk = func(prefix string, fields []core.Field) {
		for _, field := range fields {
			field.Name = core.JoinPath(prefix, field.Name)
			switch {
			case field.Type == "object":
				walk(field.Name, field.Fields)
			case slices.Contains([]string{"version", "isolate", "config", "plugin"}, field.Name[strings.LastIndex(field.Name, ".")+1:]):
			case !strings.HasPrefix(field.Type, "list of "):
				list = append(list, field)
			}
		}
	}
	walk("", core.FieldsOf(&f))
	return list
}

// Variable is the variable of the environment that sets a key of the config.
func Variable(key string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Variables lists the variables of the environment that set keys of the config.
func Variables() []string {
	var names []string
	for _, field := range bound() {
		names = append(names, Variable(field.Name))
	}
	return names
}

// StrayVariables lists the variables among environ, each of the form NAME=value, that look as if they set a key of a config
// and are read by nothing. Known are those that something else reads. An empty one counts as not set.
func StrayVariables(environ, known []string) core.Diagnostics {
	keys := make([]string, 0, len(bound()))
	for _, name := range Variables() {
		keys = append(keys, strings.TrimPrefix(name, variablePrefix))
	}
	var strays core.Diagnostics
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		key, prefixed := strings.CutPrefix(strings.ToUpper(name), variablePrefix)
		if !prefixed || value == "" || name == FileVariable || slices.Contains(known, name) || name == variablePrefix+key && slices.Contains(keys, key) {
			continue
		}
		strays = append(strays, core.Diagnostic{
			Position: core.Position{File: fromEnv + name}, Summary: "nothing reads this variable", Hint: strayHint(key, keys),
		})
	}
	return strays
}

// strayHint says what a variable was likely meant to be; key is its name without the prefix.
func strayHint(key string, keys []string) string {
	if _, setting, ofComponent := strings.Cut(key, "_CONFIG_"); ofComponent {
		return fmt.Sprintf("a setting of a component is given by --set …config.%s=…", strings.ToLower(setting))
	}
	if nearest := core.Nearest(key, keys); nearest != "" {
		return fmt.Sprintf("did you mean %q?", variablePrefix+nearest)
	}
	return "valid variables: " + strings.Join(Variables(), ", ")
}

// environment applies the variables of the environment, those of types first. An empty one counts as not set.
func environment(root *node) core.Diagnostics {
	v := viper.New()
	v.SetEnvPrefix(strings.TrimSuffix(variablePrefix, "_"))
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	var ds core.Diagnostics
	for _, field := range bound() {
		if err := v.BindEnv(field.Name); err != nil || !v.IsSet(field.Name) {
			continue // it fails without a key only
		}
		value, at := v.GetString(field.Name), core.Position{File: fromEnv + Variable(field.Name)}
		n := &node{at: at, scalar: value}
		if field.Type != "string" { // a name of digits is still a name
			var problems core.Diagnostics
			if n, problems = readValue(at, value); n == nil {
				ds = append(ds, problems...)
				continue
			}
		}
		steps, ok := parsePath(field.Name)
		if !ok {
			continue
		}
		problems := root.assign(steps, n)
		for i := range problems {
			problems[i].Path = field.Name
		}
		ds = append(ds, problems...)
	}
	return ds
}

// stdinName stands for standard input among the files; its place in diagnostics is stdinPlace.
const (
	stdinName  = "-"
	stdinPlace = "stdin"
)

func (o Options) stdin() (place string, data []byte, err error) {
	if o.Stdin == nil {
		return stdinPlace, nil, errors.New("standard input is not read here")
	}
	data, err = o.Stdin()
	if err != nil {
		err = fmt.Errorf("read standard input: %w", err)
	}
	return stdinPlace, data, err
}
