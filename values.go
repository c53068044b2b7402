package quartet

import (
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
)

// Catalog lists the components that a config may name, by the slot they fill.
type Catalog = configs.Catalog

// Options say which files and settings a composition is loaded from.
type Options = configs.Options

// Spec is a config in the form that the file has.
type Spec = configs.File

// The parts of a Spec.
type (
	// Cluster is the machines of a Spec.
	Cluster = configs.Cluster
	// NodeGroup is a group of equal nodes.
	NodeGroup = configs.NodeGroup
	// Round says when rounds are held.
	Round = configs.Round
	// Measure says which jobs a summary covers.
	Measure = configs.Measure
	// Sample says which jobs of the workload of a Spec take part, and how dense they come.
	Sample = workload.Sample
	// Estimate says how far the work of a job that policies know is from its true work.
	Estimate = workload.Estimate
	// Pipeline is the policies of a Spec.
	Pipeline = configs.Pipeline
	// Elasticity is the policies for jobs and for the cluster.
	Elasticity = configs.Elasticity
	// Policy is a component of the pipeline.
	Policy = configs.Policy
	// Part is any other component.
	Part = configs.Part
)

// What a run takes, and who may take part in it.
type (
	// Composition is a checked composition of components with a cluster and a workload, and what is wanted of a run of it.
	Composition = engine.Composition
	// Plugins lists the policies that live in processes of their own.
	Plugins = engine.Plugins
	// Session is a run that is about to begin, for Composition.Attach.
	Session = engine.Session
	// Attachment is what Composition.Attach puts between the pipeline of a run and what it works with.
	Attachment = engine.Attachment
	// Takeover replaces the policies of a run while it goes on, for Composition.Follow.
	Takeover = engine.Takeover
)

// What a run leaves.
type (
	// Result is what a run came to.
	Result = engine.Result
	// File is a file of a run.
	File = engine.File
	// Digest names a file and its content.
	Digest = engine.Digest
	// Manifest is what it takes to repeat a run byte for byte.
	Manifest = engine.Manifest
	// EarlierConfig is a config whose policies decided until those of another one took over.
	EarlierConfig = engine.EarlierConfig
	// Plugin names a plugin and its content.
	Plugin = engine.Plugin
	// Build says what a program was built from.
	Build = engine.Build
	// Dependency is a module that a program was built with.
	Dependency = engine.Dependency
)

// The files that every run writes, and the form of its manifest.
const (
	SummaryFile    = engine.SummaryFile
	ManifestFile   = engine.ManifestFile
	ManifestSchema = engine.ManifestSchema
)

// What may come of a run.
type (
	// Plan is what the next round of a run would do.
	Plan = engine.Plan
	// Twin is a copy of a run as it stands, which forecasts and what-ifs are made from.
	Twin = engine.Twin
	// Forecasting says how forecasts are made.
	Forecasting = engine.Forecasting
	// Change is what might be done to a run, for Twin.WhatIf.
	Change = engine.Change
	// MoreNodes join the cluster by a Change.
	MoreNodes = engine.MoreNodes
	// WhatIf compares the futures of a run without and with a Change.
	WhatIf = engine.WhatIf
	// Outlook is the next round of one of these futures.
	Outlook = engine.Outlook
	// Move is what the next round decides of a job in both futures.
	Move = engine.Move
	// Measured is a figure of both futures.
	Measured = engine.Measured
	// Shift is how a job fares in both futures.
	Shift = engine.Shift
)

// The names of the figures of a WhatIf.
const (
	MeasureJCT         = engine.MeasureJCT
	MeasureWait        = engine.MeasureWait
	MeasureMakespan    = engine.MeasureMakespan
	MeasureUtilization = engine.MeasureUtilization
	MeasureRestarts    = engine.MeasureRestarts
	MeasureUnfinished  = engine.MeasureUnfinished
	MeasureRejected    = engine.MeasureRejected
)
