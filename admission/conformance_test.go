package admission

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	t.Run("accept_all", func(t *testing.T) { coretest.RunAdmitter(t, NewAcceptAll(), coretest.Pinning()) })
	t.Run("load_threshold", func(t *testing.T) { coretest.RunAdmitter(t, NewLoadThreshold(), coretest.Pinning()) })
	t.Run("fits_all", func(t *testing.T) { coretest.RunAdmitter(t, NewFitsAll(), coretest.Pinning()) })
	t.Run("fits_all that drops", func(t *testing.T) {
		coretest.RunAdmitter(t, NewFitsAll(), coretest.Pinning(), coretest.WithConfig(map[string]any{"misfits": "drop", "batch": "requested"}))
	})
	t.Run("deadline", func(t *testing.T) {
		coretest.RunAdmitter(t, NewDeadline(), coretest.Pinning(), coretest.Deadlines(), coretest.WithConfig(map[string]any{"overhead": "30s"}))
	})
	t.Run("deadline with all levels", func(t *testing.T) {
		coretest.RunAdmitter(t, NewDeadline(), coretest.Pinning(), coretest.Deadlines(), coretest.WithConfig(map[string]any{"levels": "all"}))
	})
	t.Run("convergence", func(t *testing.T) {
		coretest.RunAdmitter(t, NewConvergence(), coretest.Pinning(), coretest.Reporting())
	})
	t.Run("quota", func(t *testing.T) { coretest.RunAdmitter(t, NewQuota(), coretest.Pinning()) })
	t.Run("quota with limits", func(t *testing.T) {
		coretest.RunAdmitter(t, NewQuota(), coretest.Pinning(), coretest.WithConfig(map[string]any{
			"default_devices": 12, "default_jobs": 3, "tenants": []any{map[string]any{"name": "blue", "devices": 6}},
		}))
	})
	t.Run("quota by dominant share", func(t *testing.T) {
		coretest.RunAdmitter(t, NewQuota(), coretest.Sharing(), coretest.WithConfig(map[string]any{
			"default_share": 0.4, "tenants": []any{map[string]any{"name": "blue", "share": 0.2, "jobs": 2}},
		}))
	})
	t.Run("virtual_clusters", func(t *testing.T) { coretest.RunAdmitter(t, NewVirtualClusters(), coretest.Pinning()) })
	for name, config := range map[string]map[string]any{
		"virtual_clusters with cells": {},
		"virtual_clusters that order": {"admit": admitPossible, "others": othersReject},
	} {
		config["tenants"] = []any{
			map[string]any{"name": "blue", "cells": []any{map[string]any{"level": "node", "accelerator": "a100", "count": 1}, map[string]any{"level": "device", "accelerator": "t4", "count": 4}}},
			map[string]any{"name": "red", "cells": []any{map[string]any{"level": "rack", "accelerator": "a100", "count": 1}}},
		}
		t.Run(name, func(t *testing.T) {
			coretest.RunAdmitter(t, NewVirtualClusters(), coretest.Pinning(), coretest.Deadlines(), coretest.WithConfig(config))
		})
	}
}
