package wire

import (
	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// CPUs and memory of jobs, and what they gain from them.

func resourcesTo(r *core.Resources) *stagev1.Resources {
	if r == nil {
		return nil
	}
	return &stagev1.Resources{Cpus: r.CPUs, MemoryGb: r.MemoryGB}
}

func resourcesFrom(m *stagev1.Resources) *core.Resources {
	if m == nil {
		return nil
	}
	return &core.Resources{CPUs: m.GetCpus(), MemoryGB: m.GetMemoryGb()}
}

func sensitivityTo(table uint32, s *core.Sensitivity) *stagev1.Sensitivity {
	m := &stagev1.Sensitivity{
		Table: table, Base: resourcesTo(&s.Base), Ideal: resourcesTo(&s.Ideal), Speedup: s.Speedup, IterationSeconds: s.IterationSeconds,
		Cpus: s.CPUs, MemoryGb: s.MemoryGB,
	}
	for _, row := range s.Speeds {
		m.Speeds = append(m.Speeds, &stagev1.Speeds{ByMemory: row})
	}
	return m
}

func sensitivityFrom(m *stagev1.Sensitivity) *core.Sensitivity {
	base, ideal := m.GetBase(), m.GetIdeal()
	s := &core.Sensitivity{
		Base:    core.Resources{CPUs: base.GetCpus(), MemoryGB: base.GetMemoryGb()},
		Ideal:   core.Resources{CPUs: ideal.GetCpus(), MemoryGB: ideal.GetMemoryGb()},
		Speedup: m.GetSpeedup(), IterationSeconds: m.GetIterationSeconds(), CPUs: m.GetCpus(), MemoryGB: m.GetMemoryGb(),
	}
	for _, row := range m.GetSpeeds() {
		s.Speeds = append(s.Speeds, row.GetByMemory())
	}
	return s
}
