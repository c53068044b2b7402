// Package restart describes what a restart costs a job and how policies weigh that cost.
//
// The simulator charges a Cost, policies count on one, and both take it from the section restart of a config where they have none of
// their own. How a policy sets the cost against what a job gains is a Charge.
package restart

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The settings of a component that embeds Cost, by the keys of its config.
const (
	OverheadKey    = "restart_overhead"
	ApplicationKey = "application_overhead"
)

// Cost is the pause of a job at each start and move. The config of a component embeds it.
type Cost struct {
	// RestartOverhead is the pause of a job whose application is not listed.
	RestartOverhead time.Duration `config:"restart_overhead" doc:"pause of a job at each start and move; it holds its devices meanwhile" min:"0s"`
	// ApplicationOverhead lists the applications whose jobs pause for another time.
	ApplicationOverhead []Application `config:"application_overhead" doc:"restart overheads of single applications, instead of restart_overhead"`
}

// Application is the pause of the jobs of one application.
type Application struct {
	// Application is the name of the application.
	Application string `config:"application" doc:"name of the application"`
	// Overhead is the pause of its jobs at each start and move.
	Overhead time.Duration `config:"overhead" doc:"pause at each start and move" min:"0s"`
	// Devices is the least number of requested devices of the jobs that the item is about.
	Devices int `config:"devices" doc:"for jobs that ask for at least so many; of several items of an application, the one with the most holds" min:"0"`
}

// PauseOf returns the pause of a job of an application that asks for a number of devices.
func (c *Cost) PauseOf(application string, devices int) time.Duration {
	pause, most := c.RestartOverhead, -1
	for i := range c.ApplicationOverhead {
		if a := &c.ApplicationOverhead[i]; a.Application == application && a.Devices <= devices && a.Devices > most {
			pause, most = a.Overhead, a.Devices
		}
	}
	return pause
}

// LongestPause returns the longest pause of any job, and the setting that says so.
func (c *Cost) LongestPause() (pause time.Duration, key string) {
	pause, key = c.RestartOverhead, OverheadKey
	for i := range c.ApplicationOverhead {
		if a := &c.ApplicationOverhead[i]; a.Overhead > pause {
			pause, key = a.Overhead, fmt.Sprintf("%s[%d].overhead", ApplicationKey, i)
		}
	}
	return pause, key
}

// Validate reports applications without a name, and those listed twice.
func (c *Cost) Validate() error { return ValidateApplications(ApplicationKey, c.ApplicationOverhead) }

// ValidateApplications reports the items of the list at a path that have no name or are listed twice.
func ValidateApplications(path string, list []Application) error {
	var problems []error
	for i, a := range list {
		at := fmt.Sprintf("%s[%d].application", path, i)
		same := func(earlier Application) bool {
			return earlier.Application == a.Application && earlier.Devices == a.Devices
		}
		switch {
		case a.Application == "":
			problems = append(problems, fmt.Errorf("%s: must not be empty", at))
		case slices.ContainsFunc(list[:i], same):
			problems = append(problems, fmt.Errorf("%s: application %q is listed twice%s", at, a.Application, forDevices(a.Devices)))
		}
	}
	return errors.Join(problems...)
}

// forDevices returns how large the jobs are that an item is about; nothing for one that is about all.
func forDevices(least int) string {
	if least == 0 {
		return ""
	}
	return fmt.Sprintf(" for %d devices", least)
}

// Difference is a kind of job for which two costs are not the same.
type Difference struct {
	// Application is the name of the application; empty for every one that is not listed.
	Application string
	// Devices is the number of devices that the jobs ask for.
	Devices int
	// A and B are the pauses of such a job.
	A, B time.Duration
}

// Differ lists the kinds of jobs for which two costs differ: first every application that neither lists, then those that either does,
// in their order, by the numbers of devices at which a pause may change.
func Differ(a, b *Cost) (found []Difference) {
	add := func(application string, devices int) {
		one, other := a.PauseOf(application, devices), b.PauseOf(application, devices)
		listed := func(d Difference) bool { return d.Application == application && d.Devices == devices }
		if one != other && !slices.ContainsFunc(found, listed) {
			found = append(found, Difference{application, devices, one, other})
		}
	}
	add("", 0)
	for _, list := range [...][]Application{a.ApplicationOverhead, b.ApplicationOverhead} {
		for _, item := range list {
			add(item.Application, item.Devices)
		}
	}
	return found
}
