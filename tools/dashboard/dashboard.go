package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rows hold families by prefix; a family is in the first row that has one.
var rows = []struct {
	title    string
	prefixes []string
	open     bool
}{
	{"Now", []string{"quartet_running_jobs", "quartet_pending_jobs", "quartet_devices_", "quartet_utilization_ratio", "quartet_jobs_unfinished"}, true},
	{"Jobs", []string{"quartet_job", "quartet_queueing_", "quartet_restarts_", "quartet_preemptions_"}, true},
	{"Decisions", []string{"quartet_round", "quartet_last_round", "quartet_stage_", "quartet_gap_"}, false},
	{"Accelerators", []string{"quartet_accelerator_", "quartet_gpu_hours"}, false},
	{"Pools", []string{"quartet_pool_", "quartet_bill_"}, false},
	{"Fairness", []string{"quartet_fairness_"}, false},
	{"Quality", []string{"quartet_quality_", "quartet_ended_early"}, false},
	{"Plugins", []string{"quartet_plugin_"}, false},
	{"Run", []string{"quartet_"}, false},
	{"Program", []string{"process_", "go_", "promhttp_"}, false},
	{"Others", []string{""}, false},
}

// Grafana's grid is 24 wide.
const (
	gridWidth   = 24
	panelWidth  = 8
	panelHeight = 7
)

const (
	filter   = `{job=~"$job"}`
	interval = "[$__rate_interval]"
)

type object map[string]any

// configMap wraps the dashboard for Grafana's sidecar, which looks for the label.
func configMap(families []family) ([]byte, error) {
	made, err := dashboard(families)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("# Made by tools/dashboard from the metrics that the program exposes.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err = encoder.Encode(object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{
			"name": "quartet-dashboard", "namespace": "quartet",
			"labels": object{"app.kubernetes.io/name": "quartet", "grafana_dashboard": "1"},
		},
		"data": object{"quartet.json": string(made)},
	})
	return out.Bytes(), err
}

// dashboard is JSON as Grafana imports it.
func dashboard(families []family) ([]byte, error) {
	panels, id, y := []object{}, 0, 0
	left := slices.Clone(families)
	for _, row := range rows {
		var here []family
		left = slices.DeleteFunc(left, func(f family) bool {
			if !slices.ContainsFunc(row.prefixes, func(prefix string) bool { return strings.HasPrefix(f.name, prefix) }) {
				return false
			}
			here = append(here, f)
			return true
		})
		if len(here) == 0 {
			continue
		}
		id++
		head := object{"id": id, "type": "row", "title": row.title, "collapsed": !row.open, "gridPos": grid(0, y, gridWidth, 1), "panels": []object{}}
		y++
		inside := []object{}
		for i, f := range here {
			id++
			made, err := f.panel(id)
			if err != nil {
				return nil, err
			}
			perRow := gridWidth / panelWidth
			made["gridPos"] = grid(i%perRow*panelWidth, y+i/perRow*panelHeight, panelWidth, panelHeight)
			inside = append(inside, made)
		}
		if panels = append(panels, head); row.open {
			panels = append(panels, inside...)
			y += (len(here)*panelWidth + gridWidth - 1) / gridWidth * panelHeight
		} else {
			head["panels"] = inside
		}
	}
	out, err := json.MarshalIndent(object{
		"uid": "quartet", "title": "Quartet", "tags": []string{"quartet"}, "schemaVersion": 39, "version": 1, "editable": true,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "30s", "panels": panels, "templating": object{"list": variables()},
	}, "", " ")
	return append(out, '\n'), err
}

func variables() []object {
	return []object{
		{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
		{
			"name": "job", "type": "query", "label": "Scrape job", "datasource": source, "refresh": 2, "multi": true, "includeAll": true,
			"query": "label_values(quartet_build_info, job)", "current": object{"text": "All", "value": "$__all"},
		},
	}
}

var source = object{"type": "prometheus", "uid": "${datasource}"}

func grid(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

// panel draws one family.
func (f *family) panel(id int) (object, error) {
	kind, targets := "timeseries", []object{}
	add := func(expression, legend string) {
		targets = append(targets, object{
			"refId": string(rune('A' + len(targets))), "datasource": source, "expr": expression, "legendFormat": legend,
		})
	}
	name, legend := f.name+filter, "{{instance}}"
	for _, l := range slices.Backward(f.labels) {
		legend = "{{" + l + "}} " + legend
	}
	unit := f.unit()
	switch {
	case strings.HasSuffix(f.name, "_info"):
		kind, unit = "table", "short"
		add(name, "")
		targets[0]["format"], targets[0]["instant"] = "table", true
	case unit == unitMoment:
		kind = "stat"
		add(name+" * 1000", legend)
	case f.kind == "counter":
		add("increase("+name+interval+")", legend)
	case f.kind == "gauge" || f.kind == "untyped":
		add(name, legend)
	case f.kind == "summary":
		if f.quantiles {
			add(name, "q{{quantile}} "+legend)
		}
		add(fmt.Sprintf("%s_sum%s / %[1]s_count%[2]s", f.name, filter), "mean "+legend)
	default:
		return nil, fmt.Errorf("%s: no panel for a %s", f.name, f.kind)
	}
	return object{
		"id": id, "type": kind, "title": f.title(), "description": f.help, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": unit, "min": 0}, "overrides": []object{}},
	}, nil
}

func (f *family) title() string {
	words := strings.ReplaceAll(strings.TrimPrefix(f.name, "quartet_"), "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// unitMoment is of stamps, which Grafana wants in milliseconds.
const unitMoment = "dateTimeFromNow"

// unit is read from the name, where units stand.
func (f *family) unit() string {
	if strings.Contains(f.help, "unix epoch") || strings.Contains(f.help, "since 1970") {
		return unitMoment
	}
	for _, u := range [...]struct{ in, unit string }{
		{"_seconds", "s"}, {"_bytes", "bytes"}, {"_ratio", "percentunit"}, {"_hours", "h"}, {"_percent", "percent"},
	} {
		if strings.Contains(f.name, u.in) {
			return u.unit
		}
	}
	return "short"
}
