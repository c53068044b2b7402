package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// maxRate bounds a number of steps per second, far above any real one.
const maxRate = 1e9

// gavelSpeeds are the measured speeds of jobs that run alone, and of pairs that share devices.
type gavelSpeeds struct {
	input  Input
	pairs  *core.PairTable
	byTask map[gavelTask]*gavelSpeed
}

// jobTypes lists the types of job that were measured, ascending.
func (s *gavelSpeeds) jobTypes() []string {
	var names []string
	for _, task := range slices.SortedFunc(maps.Keys(s.byTask), compareGavelTasks) {
		names = append(names, task.jobType)
	}
	return slices.Compact(names)
}

// sizes lists the numbers of replicas that a type of job was measured with, ascending.
func (s *gavelSpeeds) sizes(jobType string) []string {
	var sizes []string
	for _, task := range slices.SortedFunc(maps.Keys(s.byTask), compareGavelTasks) {
		if task.jobType == jobType {
			sizes = append(sizes, strconv.Itoa(task.replicas))
		}
	}
	return sizes
}

// scale makes up the speed of a task from that with the next smaller number of replicas, in
// proportion, and keeps it; nil if there is none.
func (s *gavelSpeeds) scale(task gavelTask) *gavelSpeed {
	for smaller := task.replicas - 1; smaller > 0; smaller-- {
		from := s.byTask[gavelTask{task.jobType, smaller}]
		if from == nil || len(from.rates) == 0 {
			continue
		}
		rates := slices.Clone(from.rates)
		for i := range rates {
			rates[i] *= float64(task.replicas) / float64(smaller)
		}
		s.byTask[task] = newGavelSpeed(task.replicas, from.accelerators, rates)
		s.byTask[task].pairs = s.pairs
		return s.byTask[task]
	}
	return nil
}

// gavelRates are rates by task and accelerator type, as they are read.
type gavelRates map[gavelTask]map[string]float64

func (r gavelRates) add(task gavelTask, accelerator string, rate float64) (twice bool) {
	if r[task] == nil {
		r[task] = map[string]float64{}
	}
	_, twice = r[task][accelerator]
	r[task][accelerator] = rate
	return twice
}

// unconsolidated ends the name of an accelerator type in measurements on devices of different servers, which the
// publication's simulator does not use.
const unconsolidated = "_unconsolidated"

func loadGavelSpeeds(ctx context.Context, path string) (*gavelSpeeds, error) {
	in, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return readGavelSpeeds(in)
}

// readGavelSpeeds reads measurements as the publication has them, in JSON, or as CSV with a row for each.
func readGavelSpeeds(in *input) (*gavelSpeeds, error) {
	content := bufio.NewReader(in.Reader)
	in.Reader = content
	read := readGavelTable
	if start, _ := content.Peek(1); string(start) == "{" {
		read = readGavelDocument
	}
	rates, pairs, problems := read(in)
	if len(rates) == 0 && len(problems) == 0 {
		problems = core.Diagnostics{{Position: core.Position{File: in.Path}, Summary: "holds no throughput of a job alone"}}
	}
	var parts []core.Pair
	if len(problems) == 0 {
		parts, problems = rates.parts(pairs)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	speeds := &gavelSpeeds{input: in.Input, pairs: core.NewPairTable(parts), byTask: map[gavelTask]*gavelSpeed{}}
	for task, byType := range rates {
		accelerators := slices.Sorted(maps.Keys(byType))
		alone := make([]float64, len(accelerators))
		for i, accelerator := range accelerators {
			alone[i] = byType[accelerator]
		}
		speeds.byTask[task] = newGavelSpeed(task.replicas, accelerators, alone)
		speeds.byTask[task].pairs = speeds.pairs
	}
	return speeds, nil
}

const (
	speedAccelerator = iota
	speedJobType
	speedReplicas
	speedPartner
	speedPartnerReplicas
	speedAlone
	speedOfPartner
)

var gavelSpeedColumns = columns{required: []string{
	"worker_type", "job_type", "scale_factor", "partner_job_type", "partner_scale_factor", "tput_self", "tput_partner",
}}

func readGavelTable(in *input) (gavelRates, []gavelPair, core.Diagnostics) {
	t, rates := openTable(in, gavelSpeedColumns), gavelRates{}
	var pairs []gavelPair
	for t.next() {
		accelerator := t.label(speedAccelerator)
		task := gavelTask{jobType: t.label(speedJobType), replicas: t.count(speedReplicas)}
		rate := t.number(speedAlone, 0, maxRate, "a number of steps per second")
		if t.has(speedPartner) {
			pair := gavelPair{accelerator: accelerator, tasks: [2]gavelTask{task, {t.label(speedPartner), t.count(speedPartnerReplicas)}}}
			pair.rates = [2]float64{rate, t.number(speedOfPartner, 0, maxRate, "a number of steps per second")}
			if t.accepted(speedReplicas) && t.accepted(speedPartnerReplicas) && pair.tasks[1].replicas != task.replicas {
				t.reject(speedPartnerReplicas, fmt.Sprintf("%d, as of the job: the two have the same devices", task.replicas))
			}
			if t.ok() && !strings.HasSuffix(accelerator, unconsolidated) {
				pair.at = t.declaration()
				pairs = append(pairs, pair)
			}
			continue
		}
		if t.ok() && !strings.HasSuffix(accelerator, unconsolidated) && rates.add(task, accelerator, rate) {
			t.reject(speedJobType, fmt.Sprintf("one row for %d of it alone on %s", task.replicas, accelerator))
		}
	}
	return rates, pairs, t.finish()
}

// maxPart bounds how much faster a job is beside another than alone: far above any measurement.
const maxPart = 10

// gavelPair is what was measured of two jobs that share devices.
type gavelPair struct {
	at          core.Position
	accelerator string
	tasks       [2]gavelTask
	rates       [2]float64
}

// parts brings the rates of pairs to parts of the rates alone, in the order of the pairs.
func (r gavelRates) parts(pairs []gavelPair) ([]core.Pair, core.Diagnostics) {
	var found core.Diagnostics
	parts, before := make([]core.Pair, len(pairs)), make(map[gavelBoth]*gavelPair, len(pairs))
	for i := range pairs {
		p := &pairs[i]
		found = append(found, p.contradicts(before)...)
		parts[i] = core.Pair{Accelerator: p.accelerator, Applications: [2]string{p.tasks[0].jobType, p.tasks[1].jobType}, Replicas: p.tasks[0].replicas}
		for k, task := range p.tasks {
			switch alone, known := r[task][p.accelerator]; {
			case !known:
				found = append(found, core.Diagnostic{
					Position: p.at, Summary: fmt.Sprintf("%s on %d devices of %s is measured beside another, and not alone", quote(task.jobType), task.replicas, p.accelerator),
				})
			case alone > 0:
				if parts[i].Parts[k] = p.rates[k] / alone; parts[i].Parts[k] > maxPart {
					found = append(found, core.Diagnostic{
						Position: p.at, Summary: fmt.Sprintf("%s on %d devices of %s is more than %d times as fast beside another as alone", quote(task.jobType), task.replicas, p.accelerator, maxPart),
					})
				}
			}
		}
		if parts[i].Parts[0] == 0 || parts[i].Parts[1] == 0 {
			parts[i].Parts = [2]float64{} // one that does not run keeps the other from its devices
		}
	}
	return parts, found
}

// gavelBoth is two jobs on an accelerator type.
type gavelBoth struct {
	accelerator string
	tasks       [2]gavelTask
}

// contradicts tells of a pair that was measured before with other rates, be it in the other order, and keeps it. Published tables have each pair in both
// orders.
func (p *gavelPair) contradicts(before map[gavelBoth]*gavelPair) core.Diagnostics {
	both, rates := gavelBoth{p.accelerator, p.tasks}, p.rates
	swapped := compareGavelTasks(p.tasks[1], p.tasks[0]) < 0
	if swapped {
		both.tasks[0], both.tasks[1] = both.tasks[1], both.tasks[0]
	}
	earlier := before[both]
	if earlier == nil {
		before[both] = p
		return nil
	}
	was := earlier.rates
	if earlier.tasks != p.tasks {
		was[0], was[1] = was[1], was[0]
	}
	if was == rates {
		return nil
	}
	summary := fmt.Sprintf("%s beside %s on %d devices of %s has %v and %v steps per second", quote(p.tasks[0].jobType), quote(p.tasks[1].jobType), p.tasks[0].replicas,
		p.accelerator, rates[0], rates[1])
	where := "before"
	if earlier.at.Line > 0 {
		where = fmt.Sprintf("in line %d", earlier.at.Line)
	}
	return core.Diagnostics{{Position: p.at, Summary: fmt.Sprintf("%s, and %v and %v %s", summary, was[0], was[1], where), Hint: "a pair may be there in both orders with the same rates"}}
}

// read reads the other job of a pair, and the rates of both.
func (p *gavelPair) read(key string, value json.RawMessage) bool {
	match := gavelKey.FindStringSubmatch(key)
	var rates []json.RawMessage
	if match == nil || !printable(key) || json.Unmarshal(value, &rates) != nil || len(rates) != len(p.rates) {
		return false
	}
	replicas, err := strconv.Atoi(match[2])
	p.tasks[1] = gavelTask{match[1], replicas}
	sound := err == nil && replicas == p.tasks[0].replicas
	for i, text := range rates {
		rate, ok := parseNumber(string(text))
		p.rates[i], sound = rate, sound && ok && rate >= 0 && rate <= maxRate
	}
	return sound
}

// ReadPairs reads measured pairs of jobs that share devices, in the form of the throughputs of source gavel, plain or compressed by gzip.
// All problems are reported together, each with its position.
func ReadPairs(ctx context.Context, path string) (*core.PairTable, Input, error) {
	speeds, err := loadGavelSpeeds(ctx, path)
	if err != nil {
		return nil, Input{}, err
	}
	return speeds.pairs, speeds.input, nil
}

// gavelKey is how the publication writes a task: ('LM (batch size 5)', 2).
var gavelKey = regexp.MustCompile(`^\('(.+)', ([0-9]+)\)$`)

// gavelDocument collects the rates of a file of the publication.
type gavelDocument struct {
	path  string
	rates gavelRates
	pairs []gavelPair
	found core.Diagnostics
}

func (d *gavelDocument) report(format string, args ...any) {
	d.found = append(d.found, core.Diagnostic{Position: core.Position{File: d.path}, Summary: fmt.Sprintf(format, args...)})
}

// readGavelDocument reads the rates of jobs alone and in pairs, by accelerator type.
func readGavelDocument(in *input) (gavelRates, []gavelPair, core.Diagnostics) {
	d := &gavelDocument{path: in.Path, rates: gavelRates{}}
	var document map[string]map[string]map[string]json.RawMessage
	if err := json.NewDecoder(in).Decode(&document); err != nil {
		d.report("%v", err)
		return nil, nil, d.found
	}
	for _, accelerator := range slices.Sorted(maps.Keys(document)) {
		if strings.HasSuffix(accelerator, unconsolidated) {
			continue
		}
		if accelerator == "" || !printable(accelerator) {
			d.report("%s is no accelerator type of printable characters", quote(accelerator))
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(document[accelerator])) {
			d.readJob(accelerator, key, document[accelerator][key])
		}
	}
	return d.rates, d.pairs, d.found
}

// readJob reads the rates of a job type on an accelerator type: alone, which is "null", and beside others.
func (d *gavelDocument) readJob(accelerator, key string, rates map[string]json.RawMessage) {
	match := gavelKey.FindStringSubmatch(key)
	if match == nil || !printable(key) {
		d.report("%s: %s is not a job type and a number, such as ('LM (batch size 5)', 2)", accelerator, quote(key))
		return
	}
	replicas, err := strconv.Atoi(match[2])
	rate, ok := parseNumber(string(rates["null"]))
	if err != nil || replicas < 1 || replicas > maxCount || !ok || rate < 0 || rate > maxRate {
		d.report("%s: %s: expected a job alone, \"null\", to have from 0 to %s steps per second on 1 to %d devices",
			accelerator, quote(key), formatBound(maxRate), maxCount)
		return
	}
	task := gavelTask{match[1], replicas}
	d.rates.add(task, accelerator, rate)
	for _, other := range slices.Sorted(maps.Keys(rates)) {
		if other == "null" {
			continue
		}
		pair := gavelPair{at: core.Position{File: d.path}, accelerator: accelerator, tasks: [2]gavelTask{task}}
		if !pair.read(other, rates[other]) {
			d.report("%s: %s beside %s: expected two rates from 0 to %s steps per second, of jobs on as many devices",
				accelerator, quote(key), quote(other), formatBound(maxRate))
			continue
		}
		d.pairs = append(d.pairs, pair)
	}
}
