package export

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/timeline"
)

// Fields of the messages of protos/perfetto/trace/perfetto_trace.proto that are used here.
const (
	tracePacket = 1

	packetTimestamp  = 8 // nanoseconds
	packetSequence   = 10
	packetEvent      = 11
	packetDescriptor = 60

	trackUUID    = 1
	trackName    = 2
	trackProcess = 3
	trackThread  = 4
	trackParent  = 5
	trackCounter = 8

	processPID  = 1
	processName = 6
	threadPID   = 1
	threadTID   = 2
	threadName  = 5

	eventAnnotation = 4
	eventType       = 9
	eventTrack      = 11
	eventCategory   = 22
	eventName       = 23
	eventDouble     = 44

	annotationInt    = 4
	annotationString = 6
	annotationName   = 10
)

// Types of a track event.
const (
	sliceBegin = 1
	sliceEnd   = 2
	instant    = 3
	counter    = 4
)

// Perfetto writes a trace that ui.perfetto.dev and trace_processor open: a process for each node and a thread for each of its
// devices, with a slice for each stay, and further threads of a device for jobs that are on it together; a track for the node itself with a slice for each time that it was down or draining; and a
// process for the cluster, with counters of its use and an instant for each stay that ended before its job did.
//
// Times are in whole nanoseconds since the start of the run.
//
// Source: perfetto.dev, "Writing TrackEvent Protos Synthetically".
func Perfetto(w io.Writer, r *Run) error {
	p := &perfetto{out: bufio.NewWriterSize(w, 1<<16), run: r, tracks: map[string]nodeTracks{}, visits: visitsOf(r)}
	p.describe()
	p.stays()
	p.outages()
	p.instants()
	p.counters()
	if p.err != nil {
		return p.err
	}
	return p.out.Flush()
}

type perfetto struct {
	out    *bufio.Writer
	run    *Run
	err    error
	packet []byte
	part   []byte
	inner  []byte

	tracks  map[string]nodeTracks // by node
	visits  map[string][]visit    // by node
	next    uint64                // uuid
	cluster uint64                // track of instants
	pids    int64
}

// nodeTracks are the identifiers of the tracks of a node.
type nodeTracks struct {
	health uint64
	device [][]uint64 // one, and one more for each further job that is on it at a time
}

// emit ends a packet.
func (p *perfetto) emit() {
	if p.err != nil {
		return
	}
	head := protowire.AppendTag(p.inner[:0], tracePacket, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(p.packet)))
	p.inner = head
	if _, p.err = p.out.Write(head); p.err == nil {
		_, p.err = p.out.Write(p.packet)
	}
}

func number(b []byte, field protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), x)
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

// track describes a track and returns its identifier.
func (p *perfetto) track(name string, parent uint64, kind protowire.Number, of []byte) uint64 {
	p.next++
	b := number(p.part[:0], trackUUID, p.next)
	if name != "" {
		b = text(b, trackName, name)
	}
	if parent > 0 {
		b = number(b, trackParent, parent)
	}
	if kind > 0 {
		b = message(b, kind, of)
	}
	p.part = b
	p.packet = message(p.packet[:0], packetDescriptor, b)
	p.emit()
	return p.next
}

// process describes a process and returns its track and its pid. Identifiers of threads follow that of their process, so that
// none is used twice.
func (p *perfetto) process(name string, threads int) (track uint64, pid int64) {
	p.pids++
	pid = p.pids
	p.pids += int64(threads)
	b := number(nil, processPID, uint64(pid))
	return p.track("", 0, trackProcess, text(b, processName, name)), pid
}

// describe describes the cluster, then every node and its devices.
func (p *perfetto) describe() {
	cluster, _ := p.process("cluster", 0)
	p.cluster = p.track("interruptions", cluster, 0, nil)
	for _, name := range counterNames {
		p.track(name, cluster, trackCounter, []byte{})
	}
	for i := range p.run.Nodes {
		n := &p.run.Nodes[i]
		if _, described := p.tracks[n.Node]; described {
			continue
		}
		lanes, threads := lanesOf(n.Devices, p.visits[n.Node])
		process, pid := p.process(n.Node+" ("+n.Accelerator+")", threads)
		t, tid := nodeTracks{health: p.track("health", process, 0, nil), device: make([][]uint64, n.Devices)}, pid
		for d := range n.Devices {
			for lane := range lanes[d] {
				name := "device " + strconv.Itoa(d)
				if lane > 0 {
					name += ", job " + strconv.Itoa(lane+1)
				}
				tid++
				b := number(nil, threadPID, uint64(pid))
				b = number(b, threadTID, uint64(tid))
				b = text(b, threadName, name)
				t.device[d] = append(t.device[d], p.track("", 0, trackThread, b))
			}
		}
		p.tracks[n.Node] = t
	}
}

// event writes a track event; name is empty for none.
func (p *perfetto) event(at float64, track, kind uint64, name, category string, annotations ...annotation) {
	e := number(p.part[:0], eventType, kind)
	e = number(e, eventTrack, track)
	if name != "" {
		e = text(e, eventName, name)
	}
	if category != "" {
		e = text(e, eventCategory, category)
	}
	for _, a := range annotations {
		b := text(p.inner[:0], annotationName, a.name)
		if a.text != "" {
			b = text(b, annotationString, a.text)
		} else {
			b = number(b, annotationInt, uint64(a.number))
		}
		p.inner = b
		e = message(e, eventAnnotation, b)
	}
	p.finish(at, e)
}

func (p *perfetto) finish(at float64, e []byte) {
	p.part = e
	b := number(p.packet[:0], packetTimestamp, uint64(nanoseconds(at)))
	b = number(b, packetSequence, 1)
	p.packet = message(b, packetEvent, e)
	p.emit()
}

// annotation is an argument of an event; a number when its text is empty.
type annotation struct {
	name, text string
	number     int64
}

func nanoseconds(seconds float64) int64 { return int64(math.Round(max(seconds, 0) * 1e9)) }

// visit is a stay on one device. Those on a device at a time have lanes of their own: slices of one track follow each other.
type visit struct {
	device, lane int
	stay         *timeline.Stay
}

// visitsOf lists the visits of each node, by device, by their start.
func visitsOf(r *Run) map[string][]visit {
	all := map[string][]visit{}
	for i := range r.Stays {
		s := &r.Stays[i]
		for _, seat := range s.Seats {
			for _, d := range seat.Devices.List() {
				all[seat.Node] = append(all[seat.Node], visit{d, 0, s})
			}
		}
	}
	for _, visits := range all {
		slices.SortStableFunc(visits, func(a, b visit) int {
			return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.stay.Start, b.stay.Start), cmp.Compare(a.stay.End, b.stay.End))
		})
		var until []float64 // by lane
		for i := range visits {
			v := &visits[i]
			if i > 0 && v.device != visits[i-1].device {
				until = until[:0]
			}
			if v.lane = slices.IndexFunc(until, func(end float64) bool { return end <= v.stay.Start }); v.lane < 0 {
				v.lane, until = len(until), append(until, 0)
			}
			until[v.lane] = v.stay.End
		}
	}
	return all
}

// lanesOf is how many lanes each device of a node has, and all of them.
func lanesOf(devices int, visits []visit) (lanes []int, all int) {
	lanes = make([]int, devices)
	for d := range lanes {
		lanes[d] = 1
	}
	for i := range visits {
		lanes[visits[i].device] = max(lanes[visits[i].device], visits[i].lane+1)
	}
	for _, n := range lanes {
		all += n
	}
	return lanes, all
}

// stays writes a slice for each device of each stay, track by track.
func (p *perfetto) stays() {
	type on struct {
		track uint64
		*timeline.Stay
	}
	var stays []on
	for node, visits := range p.visits { // in any order: they are sorted by track
		for _, v := range visits {
			stays = append(stays, on{p.tracks[node].device[v.device][v.lane], v.stay})
		}
	}
	slices.SortStableFunc(stays, func(a, b on) int {
		return cmp.Or(cmp.Compare(a.track, b.track), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	for _, v := range stays {
		s := v.Stay
		j := p.run.job(s.Job)
		args := []annotation{
			{name: "job", number: int64(s.Job)},
			{name: "replicas", number: int64(s.Replicas())},
			{name: "devices", text: devices(s, " ")},
			{name: "end", text: s.How.String()},
		}
		if j.Application != "" {
			args = append(args, annotation{name: "application", text: j.Application})
		}
		if s.BatchPerDevice > 0 {
			args = append(args, annotation{name: "batch_per_device", number: int64(s.BatchPerDevice)},
				annotation{name: "accumulation_steps", number: int64(s.AccumulationSteps)})
		}
		p.event(s.Start, v.track, sliceBegin, j.Name, "job", args...)
		p.event(s.End, v.track, sliceEnd, "", "")
	}
}

// outages writes a slice for each time that a node was not ready.
func (p *perfetto) outages() {
	for i := range p.run.Nodes {
		n := &p.run.Nodes[i]
		if n.Health != core.Ready {
			p.event(n.Start, p.tracks[n.Node].health, sliceBegin, n.Health.String(), "node")
			p.event(n.End, p.tracks[n.Node].health, sliceEnd, "", "")
		}
	}
}

// instants writes an event for each stay that ended before its job did, and for each failure.
func (p *perfetto) instants() {
	for i := range p.run.Stays {
		s := &p.run.Stays[i]
		switch s.How {
		case timeline.Preempted, timeline.Interrupted, timeline.Failed:
			p.event(s.End, p.cluster, instant, s.How.String()+": "+p.run.job(s.Job).Name, s.How.String(),
				annotation{name: "job", number: int64(s.Job)}, annotation{name: "devices", text: devices(s, " ")})
		}
	}
}

// counterNames are the counters of the cluster, whose tracks follow that of the instants.
var counterNames = [...]string{
	"devices ready", "devices used", "utilisation", "jobs running", "jobs waiting", "jobs pending", "devices requested", "statistical efficiency", "goodput per device",
}

// counters writes the use of the cluster.
func (p *perfetto) counters() {
	var last [len(counterNames)]float64
	for i := range p.run.Usage {
		u := &p.run.Usage[i]
		utilisation := 0.0
		if u.DevicesReady > 0 {
			utilisation = float64(u.DevicesUsed) / float64(u.DevicesReady)
		}
		for k, x := range [...]float64{
			float64(u.DevicesReady), float64(u.DevicesUsed), utilisation, float64(u.Running), float64(u.Waiting), float64(u.Pending),
			float64(u.Demand), float64(u.Efficiency), float64(u.Goodput),
		} {
			if math.IsNaN(x) {
				x = 0
			}
			if i > 0 && x == last[k] {
				continue
			}
			last[k] = x
			e := number(p.part[:0], eventType, counter)
			e = number(e, eventTrack, p.cluster+1+uint64(k))
			e = protowire.AppendFixed64(protowire.AppendTag(e, eventDouble, protowire.Fixed64Type), math.Float64bits(x))
			p.finish(u.At, e)
		}
	}
}
