package lead

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// fault is what happens to one of the processes, or to the server, at a moment.
type fault struct {
	after   time.Duration
	process int
	what    string
}

// candidates wait, lead and wait again, each with a clock of its own. They write the epoch of their terms as fast as they may.
type candidates struct {
	server    *server
	processes []*process
	terms     []*Term // the latest of each process that opened the state: nothing is done in the name of another
	epochs    []int64 // of the terms that opened the state
	problems  []string
}

func (c *candidates) start(i int, shift time.Duration) {
	p := newProcess(c.server, fmt.Sprintf("p%d", i))
	p.shift = shift
	c.processes[i] = p
	go func() {
		for p.ctx.Err() == nil {
			ctx, cancel := context.WithCancel(p.ctx)
			term, err := Run(ctx, p.options())
			if err == nil {
				c.write(p, i, term)
			}
			if cancel(); err == nil {
				<-term.Done
			}
		}
	}()
}

// write writes until the term is over, or another of its epoch was faster: the Lease was deleted before anybody opened the state.
func (c *candidates) write(p *process, i int, term *Term) {
	var s *State
	for {
		select {
		case <-term.Done:
			return
		case <-p.After(70 * time.Millisecond):
		}
		if s == nil {
			var err error
			if s, err = Open(p.ctx, p.client(), term, namespace, stateName, p.Now()); s != nil {
				c.server.mu.Lock()
				c.epochs, c.terms[i] = append(c.epochs, term.Epoch), term
				c.server.mu.Unlock()
			} else if errors.Is(err, ErrFenced) {
				return
			}
			continue
		}
		_ = s.Write(p.ctx, func(k *Kept) { k.Snapshot = number(numberOf(k.Snapshot) + 1) })
	}
}

// look finds two that lead.
func (c *candidates) look() {
	c.server.mu.Lock()
	terms := slices.Clone(c.terms)
	c.server.mu.Unlock()
	leads := 0
	for i, term := range terms {
		p := c.processes[i]
		p.mu.Lock()
		stopped := p.stopped != nil
		p.mu.Unlock()
		if term != nil && !stopped && !p.dead && term.Valid() { // who is stopped does nothing
			leads++
		}
	}
	if leads > 1 {
		c.problems = append(c.problems, fmt.Sprintf("%d lead at once", leads))
	}
}

func (c *candidates) suffer(f fault) {
	p := c.processes[f.process]
	switch f.what {
	case "stop":
		p.pause()
	case "go on":
		p.resume()
	case "cut":
		p.set(func(p *process) { p.cut = true })
	case "connect":
		p.set(func(p *process) { p.cut, p.lost, p.slow = false, false, 0 })
	case "lose answers":
		p.set(func(p *process) { p.lost = true })
	case "slow":
		p.set(func(p *process) { p.slow = 1500 * time.Millisecond })
	case "kill":
		p.end()
		c.start(f.process, p.shift)
	case "release":
		p.resume() // who is stopped hears nothing
		p.kill()
		synctest.Wait()
		p.end()
		c.start(f.process, p.shift)
	case "server away":
		c.server.setDown(true)
	case "server back":
		c.server.setDown(false)
	case "delete the lease":
		c.server.remove("leases", leaseName)
	}
}

// Whatever happens, no two lead at once, no epoch comes twice or after a greater one, and when all is well again somebody leads.
func TestAnyFaults(t *testing.T) {
	whats := []string{
		"stop", "go on", "cut", "connect", "lose answers", "slow", "kill", "release", "server away", "server back", "delete the lease",
	}
	rapid.Check(t, func(r *rapid.T) {
		count := rapid.IntRange(1, 3).Draw(r, "processes")
		shifts := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 5 * time.Minute, -5 * time.Minute, time.Hour}), count, count).Draw(r, "clocks")
		faults := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) fault {
			return fault{
				time.Duration(rapid.IntRange(0, 9000).Draw(r, "after")) * time.Millisecond,
				rapid.IntRange(0, count-1).Draw(r, "process"), rapid.SampledFrom(whats).Draw(r, "what"),
			}
		}), 0, 25).Draw(r, "faults")
		var c *candidates
		synctest.Test(t, func(*testing.T) {
			c = &candidates{server: &server{}, processes: make([]*process, count), terms: make([]*Term, count)}
			for i := range count {
				c.start(i, shifts[i])
			}
			for _, f := range faults {
				for until := now().Add(f.after); now().Before(until); time.Sleep(90 * time.Millisecond) {
					c.look()
				}
				c.suffer(f)
				c.look()
			}
			c.server.setDown(false)
			for _, p := range c.processes {
				p.set(func(p *process) { p.cut, p.lost, p.slow = false, false, 0 })
				p.resume()
			}
			time.Sleep(3 * DefaultLease)
			c.look()
			if !slices.ContainsFunc(c.terms, func(t *Term) bool { return t != nil && t.Valid() }) {
				c.problems = append(c.problems, "nobody leads when all is well again")
			}
			for _, p := range c.processes {
				p.end()
			}
		})
		sorted := slices.Clone(c.epochs)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(c.epochs) {
			c.problems = append(c.problems, fmt.Sprintf("epochs %v: one comes twice", c.epochs))
		}
		if !slices.IsSorted(c.server.epochs) {
			c.problems = append(c.problems, fmt.Sprintf("the state was written by epochs %v", c.server.epochs))
		}
		if len(c.problems) > 0 {
			r.Fatal(c.problems)
		}
	})
}
