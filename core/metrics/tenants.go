package metrics

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

const tenantsHeader = "tenant,jobs,completed,jct_mean_s,jct_p99_s,queueing_mean_s,queueing_p99_s,restarts_mean,gpu_seconds,rho_mean\n"

// writeTenants writes a row for each tenant, in the order of their names, over all jobs of the run.
func (c *Collector) writeTenants(w *bufio.Writer, s *shares) error {
	type tenant struct {
		jobs, restarts, completed int
		attained                  float64
		jcts, queueing            []float64
		rho                       rhos
	}
	tenants := map[string]*tenant{}
	for i := range c.records {
		r := &c.records[i]
		if r.spec == nil {
			continue
		}
		t := tenants[r.spec.Tenant]
		if t == nil {
			t = &tenant{}
			tenants[r.spec.Tenant] = t
		}
		t.jobs++
		t.restarts += int(r.restarts)
		t.attained += r.attained
		if r.started() {
			t.queueing = append(t.queueing, r.queueing())
		}
		if r.outcome == completed {
			t.completed++
			t.jcts = append(t.jcts, r.jct())
			t.rho.add(s.of(r).rho)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		t := tenants[name]
		b := AppendCell(w.AvailableBuffer(), name)
		for _, n := range [...]int{t.jobs, t.completed} {
			b = append(b, ',')
			b = strconv.AppendInt(b, int64(n), 10)
		}
		started := float64(len(t.queueing))
		jct, queueing := Describe(t.jcts), Describe(t.queueing)
		for _, x := range [...]Number{
			jct.Mean, jct.P99, queueing.Mean, queueing.P99, Number(float64(t.restarts) / started), Number(t.attained), t.rho.describe().Mean,
		} {
			b = append(b, ',')
			b = AppendNumber(b, float64(x))
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("write tenants: %w", err)
		}
	}
	return nil
}
