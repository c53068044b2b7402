package operate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// moreColumns are columns that a list has where the cluster counts more than whole devices, and what they say of one of its items.
type moreColumns[T any] struct {
	columns []render.Column
	values  []func(T) any
}

func (m *moreColumns[T]) add(c render.Column, value func(T) any) {
	m.columns, m.values = append(m.columns, c), append(m.values, value)
}

func (m *moreColumns[T]) cells(of T) (row []any) {
	for _, value := range m.values {
		row = append(row, value(of))
	}
	return row
}

// sharedColumns tell what jobs have of nodes, besides devices that somebody uses: what they have of these together, and of CPUs and memory.
func sharedColumns(nodes []*controlv1.Node, exact bool) (m moreColumns[*controlv1.Node]) {
	if slices.ContainsFunc(nodes, func(n *controlv1.Node) bool { return n.UsedMilli != nil }) {
		if exact {
			m.add(render.Column{Name: "used_milli"}, func(n *controlv1.Node) any { return n.GetUsedMilli() })
		} else {
			m.add(render.Column{Name: "parts", Numeric: true}, func(n *controlv1.Node) any { return parts(n.GetUsedMilli()) })
		}
	}
	if !slices.ContainsFunc(nodes, func(n *controlv1.Node) bool { return n.GetResources() != nil }) {
		return m
	}
	amounts := [...]struct {
		name      string
		has, used func(*controlv1.Resources) float64
	}{
		{"cpus", (*controlv1.Resources).GetCpus, (*controlv1.Resources).GetCpusUsed},
		{"memory_gb", (*controlv1.Resources).GetMemoryGb, (*controlv1.Resources).GetMemoryGbUsed},
	}
	for _, amount := range amounts {
		has := func(n *controlv1.Node) float64 {
			if x := amount.has(n.GetResources()); x > 0 {
				return x
			}
			return math.NaN()
		}
		if exact {
			m.add(render.Column{Name: amount.name}, func(n *controlv1.Node) any { return has(n) })
			m.add(render.Column{Name: amount.name + "_used"}, func(n *controlv1.Node) any { return amount.used(n.GetResources()) })
			continue
		}
		m.add(render.Column{Name: amount.name, Numeric: true}, func(n *controlv1.Node) any {
			if x := has(n); !math.IsNaN(x) {
				return decimal(amount.used(n.GetResources())) + "/" + decimal(x)
			}
			return decimal(amount.used(n.GetResources()))
		})
	}
	return m
}

// demandColumns tell what each replica of jobs asks for besides whole devices, where some job does and the cluster counts it.
func demandColumns(jobs []*controlv1.Job) (m moreColumns[*controlv1.Job]) {
	number := func(name string, of func(*controlv1.Job) float64) {
		if !slices.ContainsFunc(jobs, func(j *controlv1.Job) bool { return of(j) > 0 }) {
			return
		}
		m.add(render.Column{Name: name, Numeric: true, Wide: true}, func(j *controlv1.Job) any {
			if of(j) == 0 {
				return math.NaN()
			}
			return of(j)
		})
	}
	if slices.ContainsFunc(jobs, func(j *controlv1.Job) bool { return j.ShareMilli != nil }) {
		m.add(render.Column{Name: "share_milli", Numeric: true, Wide: true}, func(j *controlv1.Job) any {
			if j.ShareMilli == nil {
				return math.NaN()
			}
			return j.GetShareMilli()
		})
	}
	number("device_memory_gb", (*controlv1.Job).GetDeviceMemoryGb)
	number("cpus", (*controlv1.Job).GetCpus)
	number("memory_gb", (*controlv1.Job).GetMemoryGb)
	return m
}

// demand words what each replica of a job asks for besides a whole device; empty for nothing.
func demand(j *controlv1.Job) string {
	var words []string
	if j.ShareMilli != nil {
		words = append(words, parts(j.GetShareMilli())+" of a device")
	}
	cpus := " CPUs"
	if j.GetCpus() == 1 {
		cpus = " CPU"
	}
	for _, amount := range [...]struct {
		of   float64
		unit string
	}{{j.GetDeviceMemoryGb(), " GB of device memory"}, {j.GetCpus(), cpus}, {j.GetMemoryGb(), " GB of memory"}} {
		if amount.of > 0 {
			words = append(words, decimal(amount.of)+amount.unit)
		}
	}
	return strings.Join(words, ", ")
}

// parts words thousandths of devices.
func parts(milli uint32) string { return decimal(float64(milli) / 1000) }

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
