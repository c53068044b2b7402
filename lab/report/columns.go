package report

import (
	"cmp"
	"math"
	"slices"
)

// mostMoments is how many moments a curve over time keeps before it is read at even steps.
const mostMoments = 50_000

// pack puts what the charts of a run show into columns.
func (r *Run) pack() *pack {
	p := newPack()
	p.value("kind", "run")
	p.value("horizon", r.horizon())
	p.value("names", r.Jobs.name)
	r.packJobs(p)
	r.packOver(p, "")
	r.packCurves(p)
	r.packStays(p)
	r.packWaits(p)
	return p
}

func (r *Run) packJobs(p *pack) {
	j := &r.Jobs
	p.times("jobs.submit", j.submit)
	p.times("jobs.jct", j.jct)
	p.times("jobs.queueing", j.queueing)
	p.times("jobs.usage", j.usage)
	p.wholes("jobs.restarts", j.restarts)
	if j.milli != nil {
		p.wholes("jobs.milli", j.milli)
	}
	if j.shared != nil {
		p.times("jobs.shared", j.shared)
	}
	if j.lost != nil {
		p.times("jobs.lost", j.lost)
	}
	p.dictionary("applications", "jobs.application", j.application)
	p.dictionary("outcomes", "jobs.outcome", j.outcome)
	longest, waited := 0, 0
	for i := range j.name {
		if cmp.Compare(j.jct[i], j.jct[longest]) > 0 { // NaN is least
			longest = i
		}
		if cmp.Compare(j.queueing[i], j.queueing[waited]) > 0 {
			waited = i
		}
	}
	p.value("longest", longest)
	p.value("waited", waited)
	r.packTraining(p)
	r.packPaces(p)
	r.packReports(p)
}

// packTraining adds what training.csv tells of each job.
func (r *Run) packTraining(p *pack) {
	if r.trained == nil {
		return
	}
	type extra struct {
		Label string `json:"label"`
		Key   string `json:"key"`
	}
	var extras []extra
	job, err := r.trained.numbers("job")
	if err != nil {
		return
	}
	row := r.byID()
	for _, e := range [...]extra{
		{"initial batch", "initial_batch"}, {"batch, mean", "batch_mean"}, {"statistical efficiency, mean", "efficiency_mean"}, {"goodput, mean", "goodput_mean"},
	} {
		values, err := r.trained.numbers(e.Key)
		if err != nil || !r.trained.has(e.Key) {
			continue
		}
		all := make([]float64, len(r.Jobs.id))
		for i := range all {
			all[i] = math.NaN()
		}
		for i, v := range values {
			if at, known := row[int(zeroed(job[i]))]; known {
				all[at] = v
			}
		}
		e.Key = "training." + e.Key
		p.ratios(e.Key, all)
		extras = append(extras, e)
	}
	p.value("extras", extras)
}

// byID are the rows of jobs.csv by job.
func (r *Run) byID() map[int]int {
	row := make(map[int]int, len(r.Jobs.id))
	for i, id := range r.Jobs.id {
		row[id] = i
	}
	return row
}

// mostPaces is how many moments of the training of all jobs a page keeps before it leaves out some of each job.
const mostPaces = 200_000

// packPaces adds what efficiency.csv tells of each moment of a job: of many the moments at which the batch changed, and every so
// many of the others.
func (r *Run) packPaces(p *pack) {
	if r.paces == nil {
		return
	}
	job, _ := r.paces.numbers("job") // the page tells of what is no number
	at, _ := r.paces.numbers("at_s")
	batch, _ := r.paces.numbers("batch")
	efficiency, _ := r.paces.numbers("efficiency")
	type seen struct {
		moments int
		batch   float64
	}
	row, of := r.byID(), map[int]seen{}
	every := len(job)/mostPaces + 1
	var jobs []uint32
	var kept []int
	for i := range job {
		k, known := row[int(zeroed(job[i]))]
		if !known || math.IsNaN(job[i]) || math.IsNaN(at[i]) {
			continue
		}
		last := of[k]
		if last.moments%every == 0 || zeroed(batch[i]) != last.batch {
			jobs, kept = append(jobs, uint32(k)), append(kept, i)
		}
		of[k] = seen{last.moments + 1, zeroed(batch[i])}
	}
	p.counts("paces.job", jobs)
	p.times("paces.at", pick(at, kept))
	p.wholes("paces.batch", pick(batch, kept))
	p.ratios("paces.efficiency", pick(efficiency, kept))
}

// dictionary adds a column of texts of which few differ.
func (p *pack) dictionary(words, column string, texts []string) {
	list, at := []string{}, map[string]uint32{}
	indices := make([]uint32, len(texts))
	for i, text := range texts {
		k, known := at[text]
		if !known {
			k = uint32(len(list))
			at[text], list = k, append(list, text)
		}
		indices[i] = k
	}
	p.value(words, list)
	p.counts(column, indices)
}

// packOver adds the state over time: that of rounds.csv, and that of usage.csv where it was written.
func (r *Run) packOver(p *pack, prefix string) {
	add := func(t *table, from, to string, columns [][2]string) {
		at, err := t.numbers(from)
		if err != nil || len(at) == 0 {
			return
		}
		kept := evenly(len(at))
		moments := pick(at, kept)
		lasts := r.now > moments[len(moments)-1] // it has been so since
		if lasts {
			moments = append(moments, r.now)
		}
		p.times(prefix+to+".at", moments)
		for _, c := range columns {
			values, err := t.numbers(c[0])
			if err != nil || !t.has(c[0]) || !slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) }) {
				continue
			}
			list := pick(values, kept)
			if lasts {
				list = append(list, list[len(list)-1])
			}
			p.ratios(prefix+to+"."+c[1], list)
		}
	}
	add(r.rounds, "time_s", "rounds", [][2]string{{"devices_used", "used"}, {"devices_usable", "ready"}, {"running", "running"}, {"waiting", "waiting"}, {"gap_ratio", "gap"}})
	if r.usage != nil {
		add(r.usage, "at_s", "usage", [][2]string{{"devices_used", "used"}, {"devices_ready", "ready"}, {"running", "running"}, {"waiting", "waiting"}, {"demand", "demand"}, {"efficiency", "efficiency"}, {"goodput", "goodput"}, {"pool_nodes", "nodes"}, {"pool_cost", "cost"}})
	}
}

// evenly lists the rows to keep of n.
func evenly(n int) []int {
	k := min(n, mostMoments)
	rows := make([]int, k)
	for i := range rows {
		if rows[i] = i; k < n {
			rows[i] = int(int64(i) * int64(n-1) / int64(k-1))
		}
	}
	return rows
}

func pick(values []float64, rows []int) []float64 {
	list := make([]float64, len(rows))
	for i, row := range rows {
		list[i] = values[row]
	}
	return list
}

// A curve is what a page says of a distribution besides its points.
type curve struct {
	Key     string  `json:"key"`
	Title   string  `json:"title"`
	Seconds bool    `json:"seconds"`
	Low     float64 `json:"low"`  // share of the first point
	High    float64 `json:"high"` // and of the last
}

func (r *Run) packCurves(p *pack) {
	list := []curve{}
	for _, d := range r.distributions() {
		points, low, high := d.curve()
		p.ratios("cdf."+d.key, points)
		list = append(list, curve{d.key, d.title, d.seconds, low, high})
	}
	p.value("cdfs", list)
}

func (r *Run) packStays(p *pack) {
	n := len(r.stays)
	job, replicas := make([]uint32, n), make([]uint32, n)
	start, end := make([]float64, n), make([]float64, n)
	how, types := make([]string, n), make([]string, n)
	var of, on, low, high []uint32
	var visits []visit
	wide := false
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.stays[a].start, r.stays[b].start) })
	for i, k := range order {
		s := &r.stays[k]
		job[i], replicas[i], start[i], end[i], how[i], types[i] = uint32(s.job), uint32(s.replicas), s.start, s.end, s.how, s.accelerator
		for _, seat := range s.seats {
			if r.Jobs.onCPUs(s.job) {
				continue // it takes nothing of the device
			}
			visits = append(visits, visit{seat.node, seat.mask, s.start, s.end})
			of, on = append(of, uint32(i)), append(on, uint32(seat.node))
			low, high = append(low, uint32(seat.mask)), append(high, uint32(seat.mask>>32))
			wide = wide || seat.mask>>32 > 0
			if bits := bitLength(seat.mask); bits > r.nodes[seat.node].devices {
				r.nodes[seat.node].devices = bits
			}
		}
	}
	p.counts("stays.job", job)
	p.counts("stays.replicas", replicas)
	p.times("stays.start", start)
	p.times("stays.end", end)
	p.dictionary("hows", "stays.how", how)
	p.dictionary("types", "stays.type", types)
	p.counts("seats.stay", of)
	p.counts("seats.node", on)
	p.counts("seats.low", low)
	if wide {
		p.counts("seats.high", high)
	}
	if lanes, shared := lanesOf(visits); shared {
		at, of := make([]uint32, len(lanes)), make([]uint32, len(lanes))
		for i, l := range lanes {
			at[i], of[i] = l.at, l.of
		}
		p.counts("seats.lane", at)
		p.counts("seats.lanes", of)
	}
	nodes := make([][3]any, len(r.nodes))
	for i, n := range r.nodes {
		nodes[i] = [3]any{n.name, n.accelerator, n.devices}
	}
	p.value("nodes", nodes)
	if len(r.healths) > 0 {
		var node []uint32
		var at []float64
		var state []string
		for _, h := range r.healths {
			node, at, state = append(node, uint32(h.node)), append(at, h.at), append(state, h.state)
		}
		p.counts("health.node", node)
		p.times("health.at", at)
		p.dictionary("states", "health.state", state)
	}
}

func bitLength(mask uint64) int {
	n := 0
	for ; mask > 0; mask >>= 1 {
		n++
	}
	return n
}

func (r *Run) packWaits(p *pack) {
	n := len(r.waits)
	job := make([]uint32, n)
	start, end, wanted, available := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	reason := make([]string, n)
	for i, w := range r.waits {
		job[i], start[i], end[i], wanted[i], available[i], reason[i] = uint32(w.job), w.start, w.end, w.wanted, w.available, w.reason
	}
	p.counts("waits.job", job)
	p.times("waits.start", start)
	p.times("waits.end", end)
	p.wholes("waits.wanted", wanted)
	p.wholes("waits.available", available)
	p.dictionary("whys", "waits.reason", reason)

	n = len(r.tunes)
	job, start = make([]uint32, n), make([]float64, n)
	batch, passes := make([]uint32, n), make([]uint32, n)
	for i, t := range r.tunes {
		job[i], start[i], batch[i], passes[i] = uint32(t.job), t.at, uint32(max(t.batch, 0)), uint32(max(t.passes, 0))
	}
	p.counts("tunes.job", job)
	p.times("tunes.at", start)
	p.counts("tunes.batch", batch)
	p.counts("tunes.passes", passes)

	reasons := r.reasons()
	at, counts := r.waitingOver(reasons)
	p.times("waiting.at", at)
	labels := make([]string, len(reasons))
	for i, reason := range reasons {
		labels[i] = reason.name
		p.wholes("waiting."+itoa(i), counts[i])
	}
	p.value("reasons", labels)
}

// A reason is why jobs waited, and how long all of them together.
type reason struct {
	name    string
	waits   int
	seconds float64
}

// reasons are in order of the time that jobs waited for them.
func (r *Run) reasons() (list []reason) {
	at := map[string]int{}
	for _, w := range r.waits {
		i, known := at[w.reason]
		if !known {
			i = len(list)
			at[w.reason], list = i, append(list, reason{name: w.reason})
		}
		list[i].waits++
		list[i].seconds += w.end - w.start
	}
	slices.SortStableFunc(list, func(a, b reason) int { return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name)) })
	return list
}

// waitingOver counts the jobs that wait for each reason, at each moment at which a count changes.
func (r *Run) waitingOver(reasons []reason) (at []float64, counts [][]float64) {
	type change struct {
		at     float64
		reason int
		by     float64
	}
	index := map[string]int{}
	for i, reason := range reasons {
		index[reason.name] = i
	}
	changes := make([]change, 0, 2*len(r.waits))
	for _, w := range r.waits {
		changes = append(changes, change{w.start, index[w.reason], 1}, change{w.end, index[w.reason], -1})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	counts = make([][]float64, len(reasons))
	now := make([]float64, len(reasons))
	for i, c := range changes {
		now[c.reason] += c.by
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		at = append(at, c.at)
		for k := range counts {
			counts[k] = append(counts[k], now[k])
		}
	}
	if len(at) > mostMoments {
		rows := evenly(len(at))
		at = pick(at, rows)
		for k := range counts {
			counts[k] = pick(counts[k], rows)
		}
	}
	return at, counts
}
