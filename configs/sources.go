package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/viper"

	"github.com/quartet-sched/quartet/core"
)

// FileName is the name of the config that is found without being named.
const FileName = "quartet.yaml"

// FileVariable is the variable of the environment that names the config when no flag does.
const FileVariable = "QUARTET_CONFIG"

// Discover finds the config to load when none is named: that of $QUARTET_CONFIG, quartet.yaml in the working folder, or
// quartet/quartet.yaml in the user's folder of configs. The first of them is taken alone; they are not laid over each other.
// Empty when there is none.
func Discover() (path string, err error) {
	if path := os.Getenv(FileVariable); path != "" {
		return path, nil
	}
	v := viper.New()
	v.SetConfigName(FileName)
	v.SetConfigType("yaml")
	v.AddConfigPath(".")
	if user, err := os.UserConfigDir(); err == nil {
		v.AddConfigPath(filepath.Join(user, "quartet"))
	}
	err = v.ReadInConfig() // what is wrong in it is told with positions when it is loaded
	if notFound := (viper.ConfigFileNotFoundError{}); errors.As(err, &notFound) {
		return "", nil
	}
	path = v.ConfigFileUsed()
	if here, err := os.Getwd(); err == nil && filepath.Dir(path) == here {
		path = filepath.Base(path)
	}
	return path, nil
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
	return "QUARTET_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Variables lists the variables of the environment that set keys of the config.
func Variables() []string {
	var names []string
	for _, field := range bound() {
		names = append(names, Variable(field.Name))
	}
	return names
}

// environment applies the variables of the environment, those of types first. An empty one counts as not set.
func environment(root *node) core.Diagnostics {
	v := viper.New()
	v.SetEnvPrefix("QUARTET")
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
