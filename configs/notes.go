package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// note tells of what is valid and yet comes to nothing, or to little.
func (l *loader) note(c *Config, path, hint, format string, args ...any) {
	c.Notes = append(c.Notes, core.Diagnostic{Position: l.position(path), Path: path, Summary: fmt.Sprintf(format, args...), Hint: hint})
}

// noteTurns tells when jobs may take turns that are no longer than it takes them to start, so that they restart for ever.
func (l *loader) noteTurns(c *Config, opener backend.Opener) {
	starting, knows := opener.(backend.Starting)
	turns, may := l.settingsOf(c.Allocation).(core.TakesTurns)
	if !knows || !may {
		return
	}
	least, setting, turn := turns.LeastTurn()
	start := starting.LongestStart()
	if !turn || start.Pause <= 0 {
		return
	}
	rounds, path := c.Round.Interval, "round.interval"
	if c.Round.OnEvents && start.Event > 0 && (rounds == 0 || start.Event < rounds) {
		rounds, path = start.Event, "backend.config."+start.EventKey
	}
	if rounds == 0 {
		return // nothing happens from which a turn would end before somebody gets on
	}
	hint := fmt.Sprintf("set round.interval above %v", start.Pause)
	if path == "round.interval" && start.Event == 0 {
		hint += ", or hold rounds on events only with round.interval: 0s and round.on_events: true"
	} else if path != "round.interval" {
		hint += " and round.on_events to false"
	}
	key := path
	if setting != "" {
		setting = "pipeline.allocation.config." + setting
		hint += fmt.Sprintf(", or %s above %v", setting, start.Pause)
		if after := time.Duration(math.Ceil(least/rounds.Seconds()) * float64(rounds)); after > rounds {
			rounds, key = after, setting
		}
	}
	if rounds > start.Pause {
		return
	}
	keys := make([]string, len(start.Keys))
	for i, k := range start.Keys {
		keys[i] = "backend.config." + k
	}
	l.note(c, key, hint, "jobs may restart for ever: %q may hand their devices to others after %v (%s), and a start takes up to %v (%s)",
		c.Allocation.ID, rounds, key, start.Pause, strings.Join(keys, " + "))
}

// settingsOf is the config of a built-in policy, be it in a process of its own; that of a plugin tells nothing but its settings.
func (l *loader) settingsOf(s Selected[core.Allocator]) any {
	if s.Remote == nil || !s.Remote.Isolated {
		return s.Config
	}
	i := slices.IndexFunc(l.catalog.Allocation, func(f core.Factory[core.Allocator]) bool { return f.Type == s.Factory.Type })
	if i < 0 {
		return nil
	}
	raw, _ := lookup(l.settings, "pipeline.allocation.config").(map[string]any)
	config, _ := l.catalog.Allocation[i].Decode(raw) // its problems are told
	return config
}

// noteSharing tells when jobs may take turns on a device and none ever will. Plugins do not tell whether they put jobs together; what they might do is no note.
func (l *loader) noteSharing(c *Config) {
	if c.Cluster.Sharing != core.TimeSlice.String() {
		return
	}
	if c.Cluster.MaxOwners == 1 {
		l.note(c, "cluster.max_owners", "2 or more let them", "nobody shares a device: at most one job may be on it")
		return
	}
	a, p := c.Allocation, c.Placement
	if a.Remote != nil && !a.Remote.Isolated || a.ID == "" || slices.Contains(a.Factory.Sharing, core.TimeSlice) {
		return
	}
	if p.Remote != nil && !p.Remote.Isolated || p.ID == "" || p.Factory.Packs {
		return
	}
	var others, packing []string
	for i := range l.catalog.Allocation {
		if f := &l.catalog.Allocation[i]; slices.Contains(f.Sharing, core.TimeSlice) {
			others = append(others, f.Type)
		}
	}
	for i := range l.catalog.Placement {
		if f := &l.catalog.Placement[i]; f.Packs {
			packing = append(packing, f.Type)
		}
	}
	hint := "allocations that do: " + strings.Join(others, ", ")
	if len(packing) > 0 {
		hint += "; placements that do by themselves: " + strings.Join(packing, ", ")
	}
	l.note(c, "cluster.sharing", hint, "nobody shares a device: %q puts no jobs on devices together", a.ID)
}
