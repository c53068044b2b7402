package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// siaTraces are the workloads of the Sia artifact of which there are answers,
// and siaOther the one of which there are none.
var (
	siaTraces = []string{"saturn/workload-1", "saturn/workload-2", "saturn/workload-3", "philly/workload-1"}
	siaOther  = "philly/workload-2"
)

// siaReference is what the reference simulator came to on a trace.
type siaReference struct {
	Workload string  `json:"wl"`
	JCT      float64 `json:"avg_jct_h"`
	P99      float64 `json:"p99_h"`
	Makespan float64 `json:"makespan_h"`
	GPUHours float64 `json:"gpuh"`
	Restarts float64 `json:"restarts"`
}

func (b *bench) siaReferences() (map[string]siaReference, error) {
	text, err := os.ReadFile(filepath.Join(b.data, "reference", "sia", "rerun_results_here.jsonl"))
	if err != nil {
		return nil, err
	}
	references := map[string]siaReference{}
	decoder := json.NewDecoder(bufio.NewReader(bytes.NewReader(text)))
	for {
		var r siaReference
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return references, nil
		case err != nil:
			return nil, err
		}
		references[strings.TrimSuffix(strings.TrimPrefix(r.Workload, "workloads/"), ".csv")] = r
	}
}

// onTraces runs a composition of Sia's evaluation on traces.
func (b *bench) onTraces(config string, traces []string, sets ...string) ([]*outcome, error) {
	var runs []run
	for _, trace := range traces {
		path := filepath.Join(b.data, "data", "sia", "workloads", trace+".csv")
		runs = append(runs, run{config: "papers/sia-sosp23/" + config + ".yaml", sets: onPath(path, sets...)})
	}
	return b.all(runs)
}

// sia compares with the reference simulator, trace by trace.
func (b *bench) sia() ([][]string, error) {
	references, err := b.siaReferences()
	if err != nil {
		return nil, err
	}
	outcomes, err := b.onTraces("sia", siaTraces)
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"trace", "mean JCT h, reference", "ours", "difference", "p99 h", "ours", "makespan h", "ours", "GPU-h a job", "ours", "restarts a job", "ours"}}
	for i, o := range outcomes {
		r, known := references[siaTraces[i]]
		if !known {
			return nil, fmt.Errorf("the reference has no run of %s", siaTraces[i])
		}
		p99, last, err := o.tail()
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{
			siaTraces[i], hours(r.JCT), hours(o.meanJCT() / 3600), percent(o.meanJCT()/3600, r.JCT), hours(r.P99), hours(p99 / 3600),
			hours(r.Makespan), hours(last / 3600), hours(r.GPUHours), hours(float64(o.GPUHours) / float64(len(o.jobs))),
			hours(r.Restarts), hours(o.meanRestarts()),
		})
	}
	return rows, nil
}

// siaApplications compares the mean JCT of the jobs of each application.
func (b *bench) siaApplications() ([][]string, error) {
	outcomes, err := b.onTraces("sia", siaTraces)
	if err != nil {
		return nil, err
	}
	rows := [][]string{append([]string{"application"}, siaTraces...)}
	for _, application := range []string{"cifar10", "bert", "deepspeech2", "yolov3", "imagenet"} {
		row := []string{application}
		for i, o := range outcomes {
			ours, theirs, err := b.siaMeans(siaTraces[i], application, o)
			if err != nil {
				return nil, err
			}
			row = append(row, fmt.Sprintf("%.0f s, %s", theirs, percent(ours, theirs)))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// siaMeans are the mean JCTs of the jobs of an application.
func (b *bench) siaMeans(trace, application string, o *outcome) (ours, theirs float64, err error) {
	name := "sia_jct_workloads_" + strings.ReplaceAll(trace, "/", "_") + ".csv.json"
	text, err := os.ReadFile(filepath.Join(b.data, "reference", "sia", name))
	if err != nil {
		return 0, 0, err
	}
	var jcts map[string]float64
	if err := json.Unmarshal(text, &jcts); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	var names []string
	for job := range jcts {
		if strings.HasPrefix(job, application+"-") {
			names = append(names, job)
		}
	}
	slices.Sort(names)
	for _, job := range names {
		if ran := o.jobs[job]; ran == nil || !ran.JCTSeconds.Known() {
			return 0, 0, fmt.Errorf("%s: no job %q completed", trace, job)
		}
		ours, theirs = ours+float64(o.jobs[job].JCTSeconds)/float64(len(names)), theirs+jcts[job]/float64(len(names))
	}
	return ours, theirs, nil
}

// siaBaselines sets Sia against Pollux and Gavel.
func (b *bench) siaBaselines() ([][]string, error) {
	traces := append(slices.Clone(siaTraces), siaOther)
	rows := [][]string{append([]string{"policy, mean JCT h"}, traces...)}
	var first []*outcome
	for _, config := range []string{"sia", "pollux", "gavel"} {
		outcomes, err := b.onTraces(config, traces)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = outcomes
		}
		row := []string{config}
		for i, o := range outcomes {
			cell := hours(o.meanJCT() / 3600)
			if config != "sia" {
				cell += fmt.Sprintf(" (%.2f×)", o.meanJCT()/first[i].meanJCT())
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// siaVariants changes one thing at a time.
func (b *bench) siaVariants() ([][]string, error) {
	const allocation, elasticity = "pipeline.allocation.config.", "pipeline.elasticity.job.config."
	rows := [][]string{append([]string{"variant, mean JCT h"}, append(slices.Clone(siaTraces), "all, against the first")...)}
	reference := 0.0
	for _, v := range []struct {
		label string
		sets  []string
	}{
		{"as published", nil},
		{"restarts clamped", []string{allocation + "clamp_restarts=true"}},
		{"utilities not rounded", []string{allocation + "digits=0"}},
		{"both: Quartet's default", []string{allocation + "clamp_restarts=true", allocation + "digits=0"}},
		{"every move is a restart", []string{"backend.config.publication.moves=restart"}},
		{"types ignored", []string{allocation + "types=blind", elasticity + "types=blind"}},
		{"types ignored by allocation alone", []string{allocation + "types=blind"}},
		{"jobs not profiled", []string{elasticity + "profiled=false"}},
		{"the truth known", []string{elasticity + "knowledge=oracle"}},
		{"strong-scaling jobs", []string{"workload.config.jobs=strong_scaling"}},
		{"rigid jobs", []string{"workload.config.jobs=rigid"}},
	} {
		outcomes, err := b.onTraces("sia", siaTraces, v.sets...)
		if err != nil {
			return nil, err
		}
		row, total := []string{v.label}, 0.0
		for _, o := range outcomes {
			row = append(row, hours(o.meanJCT()/3600))
			total += o.meanJCT()
		}
		if reference == 0 {
			reference = total
		}
		rows = append(rows, append(row, percent(total, reference)))
	}
	return rows, nil
}
