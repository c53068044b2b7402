package workload

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
)

const (
	csvName = iota
	csvSubmit
	csvDuration
	csvReplicas
	csvTenant
	csvApplication
	csvWeight
	csvMinReplicas
	csvMaxReplicas
	csvAccelerators
	csvCPUs
	csvMemory
	csvPinned
	csvLimit
	csvEstimate
	csvObservedStart
	csvOutcome
	csvDeadline
	csvBestEffort
	csvTier
	csvShare
	csvUtilisation
	csvDeviceMemory
	csvTolerance
	csvProfile
	csvLoad
	csvCompute
	csvSync
	csvIteration
	csvIdealCPUs
	csvIdealMemory
	csvIdealSpeedup
	csvBaseCPUs
	csvBaseMemory
	csvExperiment
	csvEnd // number of columns
)

var csvColumns = columns{
	required: []string{"name", "submit_s", "duration_s", "replicas"},
	optional: []string{"tenant", "application", "weight", "min_replicas", "max_replicas", "accelerators", "cpus", "memory_gb", "pinned", "limit_s", "estimate_s", "observed_start_s", "outcome", "deadline_s", "best_effort", "tier", "share_milli", "utilisation", "device_memory_gb", "slowdown_tolerance", "mig_profile", "load_s", "compute_s", "sync_s", "iteration_s", "ideal_cpus", "ideal_memory_gb", "ideal_speedup", "base_cpus", "base_memory_gb", "experiment"},
}

// acceleratorSeparator divides the types in a cell of column accelerators.
const acceleratorSeparator = "|"

// NewCSV makes the factory of the source `csv`.
func NewCSV() core.Factory[Source] {
	return newTraceFactory(core.Info{
		Type:    "csv",
		Summary: "trace in Quartet's own CSV format",
		Description: "Each row is a job of known duration. See docs/trace-format.md for the columns. A job whose min_replicas and " +
			"max_replicas differ is elastic, and as fast as it has replicas.",
	}, readCSV)
}

func readCSV(in *input) (*Workload, error) {
	return readTrace(in, csvColumns, func(t *table) Job {
		job := newDurationJob(t.text(csvName), t.moment(csvSubmit), t.span(csvDuration), t.count(csvReplicas))
		readOptional(t, &job.Spec)
		job.Observed = readObserved(t, job.Spec.SubmitSeconds)
		if t.has(csvLimit) {
			job.LimitSeconds = t.span(csvLimit)
		}
		if t.has(csvEstimate) {
			job.EstimateSeconds = t.span(csvEstimate)
		}
		return job
	})
}

func readOptional(t *table, spec *core.JobSpec) {
	readOwner(t, spec)
	readBounds(t, spec)
	if t.has(csvAccelerators) {
		spec.Accelerators = readAccelerators(t)
	}
	if t.has(csvCPUs) {
		spec.CPUs = t.number(csvCPUs, 0, maxCount, "a number")
	}
	if t.has(csvMemory) {
		spec.MemoryGB = t.number(csvMemory, 0, maxCount, "a number")
	}
	if t.has(csvPinned) {
		spec.Pinned = t.flag(csvPinned)
	}
	if t.has(csvDeadline) {
		spec.DeadlineSeconds = t.span(csvDeadline)
	}
	if t.has(csvBestEffort) {
		spec.BestEffort = t.flag(csvBestEffort)
	}
	readShare(t, spec)
	readSensitivity(t, spec)
	if t.has(csvTier) {
		if spec.Tier = t.cell(csvTier); core.TierRank(spec.Tier) < 0 {
			t.reject(csvTier, strings.Join(core.Tiers(), ", "))
		}
	}
}

// readOwner reads whose job it is, what it trains, and how much it counts.
func readOwner(t *table, spec *core.JobSpec) {
	if t.has(csvTenant) {
		spec.Tenant = t.label(csvTenant)
	}
	if t.has(csvApplication) {
		spec.Application = t.label(csvApplication)
	}
	if t.has(csvExperiment) {
		if spec.Experiment = t.label(csvExperiment); t.accepted(csvExperiment) && !PlainName(spec.Experiment) {
			t.reject(csvExperiment, nameRule)
		}
	}
	if t.has(csvWeight) {
		spec.Weight = t.number(csvWeight, 1e-6, 1e6, "a number")
	}
}

// readBounds reads how few and how many replicas a job may have.
func readBounds(t *table, spec *core.JobSpec) {
	if t.has(csvMinReplicas) {
		if spec.MinReplicas = t.count(csvMinReplicas); t.accepted(csvReplicas) && spec.MinReplicas > spec.Requested {
			t.reject(csvMinReplicas, fmt.Sprintf("at most the %d of replicas", spec.Requested))
		}
	}
	if t.has(csvMaxReplicas) {
		if spec.MaxReplicas = t.count(csvMaxReplicas); t.accepted(csvReplicas) && t.accepted(csvMaxReplicas) && spec.MaxReplicas < spec.Requested {
			t.reject(csvMaxReplicas, fmt.Sprintf("at least the %d of replicas", spec.Requested))
		}
	}
}

// readAccelerators reads the types that a job may run on.
func readAccelerators(t *table) []string {
	types := strings.Split(t.label(csvAccelerators), acceleratorSeparator)
	for i, accelerator := range types {
		if accelerator == "" || slices.Contains(types[:i], accelerator) {
			t.reject(csvAccelerators, "different accelerator types with | between them")
			break
		}
	}
	return types
}

// readShare reads what a replica has of a device.
func readShare(t *table, spec *core.JobSpec) {
	if t.has(csvShare) {
		spec.Share = &core.Share{Milli: int(t.whole(csvShare, core.WholeDevice, "thousandths of a device"))}
	}
	if t.has(csvProfile) {
		profile := t.cell(csvProfile)
		switch p, known := mig.ByName(profile); {
		case !known:
			t.reject(csvProfile, "1g, 2g, 3g, 4g, 7g")
		case spec.Share == nil:
			spec.Share = &core.Share{Milli: core.WholeDevice, Profile: profile}
		case spec.Share.Milli == 0 && t.accepted(csvShare):
			t.reject(csvProfile, "none, as share_milli is 0")
		case t.accepted(csvShare) && mig.Of(p).Compute*core.WholeDevice < spec.Share.Milli*mig.ComputeSlices:
			least := mig.Of(mig.Smallest(spec.Share.Milli, core.WholeDevice)).Name
			t.reject(csvProfile, fmt.Sprintf("one with the compute of share_milli, which is %d: %s or a larger one", spec.Share.Milli, least))
		default:
			spec.Share.Profile = profile
		}
	}
	if t.has(csvUtilisation) {
		spec.Utilisation = t.number(csvUtilisation, aboveZero, 1, "nothing where it is unknown, or a part of a device") // 0 would count as unknown
	}
	if t.has(csvDeviceMemory) {
		spec.DeviceMemoryGB = t.number(csvDeviceMemory, 0, 1e6, "a number of gigabytes")
	}
	if t.has(csvTolerance) {
		spec.SlowdownTolerance = t.number(csvTolerance, aboveZero, 1, "nothing where it is unknown, or a part of the speed alone") // 0 would count as unknown
	}
	readIteration(t, &spec.Iteration)
}

// readIteration reads what an iteration takes of each kind of resource.
func readIteration(t *table, i *core.Iteration) {
	for k, stage := range [...]*float64{&i.Load, &i.Compute, &i.Sync} {
		if t.has(csvLoad + k) {
			*stage = t.number(csvLoad+k, 0, maxSeconds, "a number of seconds")
		}
	}
	if !t.has(csvIteration) {
		return
	}
	if i.Measured = t.span(csvIteration); i.Seconds() == 0 && t.accepted(csvIteration) {
		t.reject(csvIteration, "none without load_s, compute_s or sync_s")
	}
}

// readSensitivity reads how fast a job is by its CPUs and memory: in all five columns, or in none.
func readSensitivity(t *table, spec *core.JobSpec) {
	any := false
	for column := csvIdealCPUs; column <= csvBaseMemory; column++ {
		any = any || t.has(column) && t.cell(column) != ""
	}
	if !any {
		return
	}
	var values [csvBaseMemory - csvIdealCPUs + 1]float64
	for i := range values {
		if !t.has(csvIdealCPUs + i) {
			t.reject(csvName, "a value in each of ideal_cpus, ideal_memory_gb, ideal_speedup, base_cpus and base_memory_gb, or in none")
			return
		}
		low := float64(aboveZero)
		if csvIdealCPUs+i == csvIdealSpeedup {
			low = 1
		}
		values[i] = t.number(csvIdealCPUs+i, low, maxCount, "a number")
	}
	if t.ok() && values[2] > 1 && values[0] <= values[3] && values[1] <= values[4] {
		t.reject(csvIdealSpeedup, "1, as the ideal is no more than the base")
	}
	spec.Sensitivity = &core.Sensitivity{
		Ideal: core.Resources{CPUs: values[0], MemoryGB: values[1]}, Speedup: values[2], Base: core.Resources{CPUs: values[3], MemoryGB: values[4]},
	}
}

func (t *table) flag(column int) bool {
	switch t.cell(column) {
	case "true":
		return true
	case "false":
	default:
		t.reject(column, "true or false")
	}
	return false
}

// readObserved is what a row tells of how its job went where it was recorded.
func readObserved(t *table, submit float64) (o Observed) {
	if t.has(csvObservedStart) {
		o.Started, o.SubmitSeconds, o.StartSeconds = true, submit, t.moment(csvObservedStart)
		if t.accepted(csvObservedStart) && t.accepted(csvSubmit) && o.StartSeconds < submit {
			t.reject(csvObservedStart, "a moment not before submit_s")
		}
	}
	if t.has(csvOutcome) {
		o.Outcome = t.label(csvOutcome)
	}
	return o
}

// WriteCSV writes a workload in the format that the source `csv` reads: all of it, for jobs of known
// duration. A job with another model is a core.Diagnostics error, before anything is written. Optional
// columns are written when a job needs them.
func WriteCSV(w io.Writer, workload *Workload) error {
	kept, err := columnsNeeded(workload)
	if err != nil {
		return err
	}
	names := csvColumns.all()
	out := csv.NewWriter(w)
	record := make([]string, len(kept))
	for i, column := range kept {
		record[i] = names[column]
	}
	if err := out.Write(record); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for i := range workload.Jobs {
		cells := cellsOf(&workload.Jobs[i])
		for k, column := range kept {
			record[k] = cells[column]
		}
		if err := out.Write(record); err != nil {
			return fmt.Errorf("write job %q: %w", workload.Jobs[i].Spec.Name, err)
		}
	}
	out.Flush()
	return out.Error()
}

// columnsNeeded lists the required columns and those optional ones that some job has a value for.
func columnsNeeded(workload *Workload) ([]int, error) {
	var used [csvEnd]bool
	for i := range workload.Jobs {
		job := &workload.Jobs[i]
		if _, known := job.Model.(*durationModel); !known {
			return nil, core.Diagnostics{{
				Position: job.At,
				Summary:  fmt.Sprintf("job %q has no fixed duration", job.Spec.Name),
				Hint:     "a trace holds jobs of known duration only; how fast this one runs depends on its placement and batch",
			}}
		}
		for column, cell := range cellsOf(job) {
			used[column] = used[column] || cell != ""
		}
	}
	var kept []int
	for column := range used {
		if used[column] || column < len(csvColumns.required) {
			kept = append(kept, column)
		}
	}
	return kept, nil
}

// cellsOf renders a job of known duration by column. Values that reading assumes where a cell is empty are left empty.
func cellsOf(job *Job) [csvEnd]string {
	spec := &job.Spec
	cells := [csvEnd]string{
		csvName:         spec.Name,
		csvSubmit:       formatNumber(spec.SubmitSeconds),
		csvDuration:     formatNumber(job.Model.PhaseEnd(0)),
		csvReplicas:     strconv.Itoa(spec.Requested),
		csvTenant:       spec.Tenant,
		csvApplication:  spec.Application,
		csvAccelerators: strings.Join(spec.Accelerators, acceleratorSeparator),
		csvOutcome:      job.Observed.Outcome,
		csvTier:         spec.Tier,
		csvExperiment:   spec.Experiment,
	}
	set := func(column int, known bool, text string) {
		if known {
			cells[column] = text
		}
	}
	number := func(column int, x float64) { set(column, x != 0, formatNumber(x)) }
	set(csvWeight, spec.Weight != 1, formatNumber(spec.Weight))
	set(csvMinReplicas, spec.MinReplicas != spec.Requested, strconv.Itoa(spec.MinReplicas))
	set(csvMaxReplicas, spec.MaxReplicas != spec.Requested, strconv.Itoa(spec.MaxReplicas))
	number(csvCPUs, spec.CPUs)
	number(csvMemory, spec.MemoryGB)
	if s := spec.Share; s != nil {
		if cells[csvProfile] = s.Profile; s.Profile == "" || s.Milli < core.WholeDevice {
			cells[csvShare] = strconv.Itoa(s.Milli)
		}
	}
	number(csvUtilisation, spec.Utilisation)
	number(csvDeviceMemory, spec.DeviceMemoryGB)
	number(csvTolerance, spec.SlowdownTolerance)
	for k, seconds := range [...]float64{spec.Iteration.Load, spec.Iteration.Compute, spec.Iteration.Sync, spec.Iteration.Measured} {
		number(csvLoad+k, seconds)
	}
	if of := spec.Sensitivity; of != nil {
		for i, x := range [...]float64{of.Ideal.CPUs, of.Ideal.MemoryGB, of.Speedup, of.Base.CPUs, of.Base.MemoryGB} {
			cells[csvIdealCPUs+i] = formatNumber(x)
		}
	}
	set(csvPinned, spec.Pinned, "true")
	number(csvDeadline, spec.DeadlineSeconds)
	set(csvBestEffort, spec.BestEffort, "true")
	number(csvLimit, job.LimitSeconds)
	number(csvEstimate, job.EstimateSeconds)
	set(csvObservedStart, job.Observed.Started, formatNumber(job.Observed.StartOn(spec.SubmitSeconds)))
	return cells
}

// formatNumber is the shortest text that reads back as the same number.
func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
