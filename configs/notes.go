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

// noteTurns notes when jobs may take turns that are no longer than it takes them to start, so that they restart for ever. starting
// is nil for a backend that does not know how long jobs take to start.
func (l *loader) noteTurns(c *Config, starting backend.Starting) {
	turns := abilitiesOf(settingsOf(l, c.Allocation, "pipeline.allocation", l.catalog.Allocation)).TakesTurns
	if starting == nil || turns == nil {
		return
	}
	least, setting, turn := turns.LeastTurn()
	if !turn {
		return
	}
	if interval := c.Round.Interval; interval > 0 && max(interval, time.Duration(least*float64(time.Second))) < time.Second {
		l.note(c, "round.interval", "set round.interval to 1s or more", "%q may decide anew in each of %.0f rounds that an hour of the run has, as they are held every %v",
			c.Allocation.ID, time.Hour.Seconds()/interval.Seconds(), interval)
	}
	start := starting.LongestStart()
	rounds, path := turnEnds(c.Round, start)
	if start.Pause <= 0 || rounds == 0 { // nothing happens from which a turn would end before somebody gets on
		return
	}
	hint := turnHint(path, start)
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
	l.note(c, key, hint, "jobs may restart for ever: %q may hand their devices to others after %v (%s), and a start takes up to %v (%s)",
		c.Allocation.ID, rounds, key, start.Pause, keysOf(start))
}

// LongerTurns says which settings let jobs keep their devices for longer.
func (c *Config) LongerTurns() string {
	settings := "a longer round.interval"
	if !c.Round.OnEvents || c.Round.Interval > 0 {
		settings += fmt.Sprintf(" (%v)", c.Round.Interval)
	} else {
		settings += " (none), and round.on_events: false"
	}
	if turns := abilitiesOf(c.Allocation.Config).TakesTurns; turns != nil {
		if least, setting, _ := turns.LeastTurn(); setting != "" {
			settings = fmt.Sprintf("a larger pipeline.allocation.config.%s (%v s on one device), or %s,", setting, least, settings)
		}
	}
	return settings + " lets them keep their devices for longer"
}

// turnEnds is how long a turn may take at least by the rounds, and the setting that says so; 0 where no round ends it.
func turnEnds(r Round, start backend.Start) (rounds time.Duration, path string) {
	if r.OnEvents && start.Event > 0 && (r.Interval == 0 || start.Event < r.Interval) {
		return start.Event, "backend.config." + start.EventKey
	}
	return r.Interval, "round.interval"
}

// turnHint says which setting makes rounds longer than a start.
func turnHint(path string, start backend.Start) string {
	hint := fmt.Sprintf("set round.interval above %v", start.Pause)
	switch {
	case path != "round.interval":
		return hint + " and round.on_events to false"
	case start.Event == 0:
		return hint + ", or hold rounds on events only with round.interval: 0s and round.on_events: true"
	}
	return hint
}

// noteInterval says when turns cannot end when they should, as rounds are too rare.
func (l *loader) noteInterval(c *Config) {
	needs := abilitiesOf(settingsOf(l, c.Allocation, "pipeline.allocation", l.catalog.Allocation)).NeedsInterval
	if needs == nil {
		return
	}
	longest, setting := needs.LongestInterval()
	setting = "pipeline.allocation.config." + setting
	hint := fmt.Sprintf("set round.interval to %v or less, or %s to the interval or more", longest, setting)
	switch interval := c.Round.Interval; {
	case interval == 0:
		hint = fmt.Sprintf("set round.interval to %v or less", longest)
		l.note(c, "round.interval", hint, "turns end only where something happens, and nothing may: %q has them end after %v (%s), and rounds have an interval of %v, which is none",
			c.Allocation.ID, longest, setting, interval)
	case interval > longest:
		l.note(c, "round.interval", hint, "turns end later than they should: %q has them end after %v (%s), and rounds are held every %v", c.Allocation.ID, longest, setting, interval)
	}
}

// notePromises says when promised deadlines may be broken: nobody carries the plans out, or a change of devices takes longer than they count.
func (l *loader) notePromises(c *Config, starting backend.Starting) {
	type planner struct{ id, path string }
	var first planner
	var counted []func(start backend.Start)
	plans := func(by planner, config any) bool {
		p := abilitiesOf(config).PlansDeadlines
		if p == nil {
			return false
		}
		counted = append(counted, func(start backend.Start) {
			overhead, setting := p.PlannedOverhead()
			if overhead >= start.Pause {
				return
			}
			setting = by.path + ".config." + setting
			l.note(c, setting, fmt.Sprintf("set %s to %v", setting, start.Pause),
				"promises of deadlines may be broken: %q counts %v for a change of devices, and a start takes up to %v (%s)", by.id, overhead, start.Pause, keysOf(start))
		})
		return true
	}
	for i, s := range c.Admission {
		by := planner{s.ID, fmt.Sprintf("pipeline.admission[%d]", i)}
		if plans(by, settingsOf(l, s, by.path, l.catalog.Admission)) && first.id == "" {
			first = by
		}
	}
	if first.id == "" {
		return // nobody promises
	}
	a := c.Allocation
	told := a.Remote == nil || a.Remote.Isolated // what a plugin plans is its own matter
	if !plans(planner{a.ID, "pipeline.allocation"}, settingsOf(l, a, "pipeline.allocation", l.catalog.Allocation)) && told && a.ID != "" {
		l.note(c, "pipeline.allocation.type", "take elasticflow", "promises of deadlines may be broken: %q promises by its plans, and %q keeps none", first.id, a.ID)
	}
	if starting != nil {
		start := starting.LongestStart()
		for _, tell := range counted {
			tell(start)
		}
	}
}

// keysOf are the settings of the backend that add up to a start.
func keysOf(start backend.Start) string {
	keys := make([]string, len(start.Keys))
	for i, k := range start.Keys {
		keys[i] = "backend.config." + k
	}
	return strings.Join(keys, " + ")
}

// settingsOf is the config of a built-in policy, be it in a process of its own; that of a plugin tells nothing but its settings.
func settingsOf[S any](l *loader, s Selected[S], path string, factories []core.Factory[S]) any {
	if s.Remote == nil || !s.Remote.Isolated {
		return s.Config
	}
	i := slices.IndexFunc(factories, func(f core.Factory[S]) bool { return f.Type == s.Factory.Type })
	if i < 0 {
		return nil
	}
	raw, _ := lookup(l.settings, path+".config").(map[string]any)
	config, _ := factories[i].Decode(raw) // its problems are told
	return config
}

// noteSharing says when jobs may take turns on a device and none ever will. Plugins do not report whether they put jobs together; what they might do is no note.
func (l *loader) noteSharing(c *Config) {
	l.noteUnused(c)
	if how, err := core.SharingOf(c.Cluster.Sharing); err == nil && how.Parts() {
		l.noteWholeDevices(c)
	}
	if c.Cluster.Sharing != core.TimeSlice.String() {
		return
	}
	if c.Cluster.MaxOwners == 1 {
		l.note(c, "cluster.max_owners", "2 or more let them", "no jobs share a device: at most one job may be on it")
		return
	}
	a, p := c.Allocation, c.Placement
	groups, packs := !a.unknown() && slices.Contains(a.Factory.Sharing, core.TimeSlice), !p.unknown() && p.Factory.Packs
	if groups && packs {
		seating := typesThat(l.catalog.Placement, func(i *core.Info) bool { return slices.Contains(i.Sharing, core.TimeSlice) && !i.Packs })
		l.note(c, "pipeline.placement.type", "placements that seat groups: "+seating,
			"%q makes groups of jobs that share devices, and %q decides by itself who does: of each group one job at a time is seated", a.ID, p.ID)
	}
	if groups || packs || a.unknown() || p.unknown() {
		return
	}
	hint := "allocations that do: " + typesThat(l.catalog.Allocation, func(i *core.Info) bool { return slices.Contains(i.Sharing, core.TimeSlice) })
	if packing := typesThat(l.catalog.Placement, func(i *core.Info) bool { return i.Packs }); packing != "" {
		hint += "; placements that do by themselves: " + packing
	}
	l.note(c, "cluster.sharing", hint, "no jobs share a device: %q puts no jobs on devices together", a.ID)
}

// unknown reports whether nothing is known of what a policy does: it is a plugin's, or missing.
func (s Selected[S]) unknown() bool { return s.ID == "" || s.Remote != nil && !s.Remote.Isolated }

// typesThat lists the types of a slot that say something of themselves, with commas between them.
func typesThat[S any](factories []core.Factory[S], say func(*core.Info) bool) string {
	var types []string
	for i := range factories {
		if f := &factories[i]; say(&f.Info) {
			types = append(types, f.Type)
		}
	}
	return strings.Join(types, ", ")
}

// noteWholeDevices says when jobs have parts of devices, and an allocation stops granting where the devices would be used up if they were whole. What a plugin
// counts is its own matter.
func (l *loader) noteWholeDevices(c *Config) {
	a := c.Allocation
	if a.ID == "" || a.Remote != nil && !a.Remote.Isolated {
		return
	}
	if abilitiesOf(settingsOf(l, a, "pipeline.allocation", l.catalog.Allocation)).CountsFractions != nil {
		return
	}
	var others []string
	for _, f := range l.catalog.Allocation {
		config, problems := f.Decode(nil)
		if abilitiesOf(config).CountsFractions != nil && len(problems) == 0 {
			others = append(others, f.Type)
		}
	}
	slices.Sort(others)
	l.note(c, "pipeline.allocation.type", "allocations that count parts: "+strings.Join(others, ", "),
		"jobs have parts of devices, and %q counts whole ones: it grants no more jobs than would fit if each had its devices alone", a.ID)
}

// noteUnused tells of settings that are for another way of sharing, and do nothing.
func (l *loader) noteUnused(c *Config) {
	how, err := core.SharingOf(c.Cluster.Sharing)
	if err != nil {
		return // told before
	}
	if how != core.TimeSlice {
		if _, given := l.find("cluster.max_owners"); given && c.Cluster.MaxOwners != defaultMaxOwners {
			l.note(c, "cluster.max_owners", "leave it out, or set cluster.sharing to timeslice", "does nothing: it is for jobs that take turns, and cluster.sharing is %s", how)
		}
		if c.Cluster.OversubscribeMemory {
			l.note(c, "cluster.oversubscribe_memory", "leave it out, or set cluster.sharing to timeslice", "does nothing: it is for jobs that take turns, and cluster.sharing is %s", how)
		}
	}
	const model = "backend.config.co_location.model"
	if name, _ := lookup(l.settings, model).(string); name != "" && name != "none" && how == core.Exclusive {
		l.note(c, model, "leave it out, or set cluster.sharing", "%s does nothing: it is for jobs on a device together, and cluster.sharing is %s", name, how)
	}
	if _, cellular := c.Placement.Config.(virtualClusters); cellular || c.Placement.ID == "" || c.Placement.Remote != nil && !c.Placement.Remote.Isolated {
		return
	}
	for i, s := range c.Admission {
		if _, cellular := s.Config.(virtualClusters); cellular {
			l.note(c, fmt.Sprintf("pipeline.admission[%d].type", i), "take the placement cells, with the same tenants",
				"%q admits jobs to cells that no placement reserves for them: %q seats them anywhere", s.ID, c.Placement.ID)
		}
	}
}
