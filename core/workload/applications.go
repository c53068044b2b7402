package workload

import (
	"embed"
	"fmt"
	"path"
	"slices"

	"github.com/quartet-sched/quartet/core/goodput"
)

//go:embed applications/*.yaml
var applicationFiles embed.FS

// Applications are the profiles that come with Quartet, by name: the applications of Pollux (OSDI'21), Table 1.
func Applications() ([]goodput.Profile, error) {
	const folder = "applications"
	entries, err := applicationFiles.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("list the embedded applications: %w", err)
	}
	var profiles []goodput.Profile
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		text, err := applicationFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read embedded %q: %w", name, err)
		}
		p, err := goodput.ReadProfile(name, text)
		if err != nil {
			return nil, err
		}
		profiles = append(profiles, p)
	}
	return profiles, nil
}

// tunedModels are the models of polluxKinds.
func tunedModels() (map[polluxTask]*modelledModel, error) {
	profiles, err := Applications()
	if err != nil {
		return nil, err
	}
	models := map[polluxTask]*modelledModel{}
	for _, kind := range polluxKinds {
		task := polluxTask{kind.value.application, kind.value.batch}
		i := slices.IndexFunc(profiles, func(p goodput.Profile) bool { return p.Name == task.application })
		if i < 0 {
			return nil, fmt.Errorf("no embedded application %q", task.application)
		}
		if models[task] == nil {
			models[task] = newModelledModel(&profiles[i], task.batch)
		}
		if models[task] == nil {
			return nil, fmt.Errorf("embedded application %q does not train with a batch of %d", task.application, task.batch)
		}
	}
	return models, nil
}
