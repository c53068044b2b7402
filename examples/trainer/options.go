package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core/goodput"
)

// The models.
const (
	modelSoftmax = "softmax"
	modelMLP     = "mlp"
)

// task is what is learned. A checkpoint belongs to one.
type task struct {
	Model    string
	Samples  int
	Features int
	Classes  int
	Hidden   int
	Seed     uint64
}

// options say how a task is trained.
type options struct {
	task
	Batch           int     // initial total batch
	Rate            float64 // learning rate at that batch
	Iterations      float64 // work to do, in iterations at that batch
	Scaling         goodput.ScalingRule
	CheckpointEvery time.Duration
	ReportEvery     time.Duration

	Profile *goodput.Profile // nil unless paced
	Speedup float64          // of the profile's time
	StandIn int              // samples of the profile for which one is trained
	Least   time.Duration    // shortest step: so many of the profile are taken at once as last so long

	StartUp time.Duration // of the profile: how long it takes from the start of the job to its first step

	Replicas int // to start; 0 when somebody else starts them
}

var scalings = []goodput.ScalingRule{goodput.AdaScale, goodput.SquareRoot, goodput.Linear}

// readOptions reads the command line. Everything that is wrong with it is reported together.
func readOptions(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("trainer", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&o.Model, "model", modelSoftmax, "softmax or mlp")
	f.IntVar(&o.Samples, "samples", 4096, "samples in the data set")
	f.IntVar(&o.Features, "features", 16, "features of a sample")
	f.IntVar(&o.Classes, "classes", 4, "classes of samples")
	f.IntVar(&o.Hidden, "hidden", 16, "units of the hidden layer of mlp")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the data, of the first parameters and of the order of samples")
	f.IntVar(&o.Batch, "batch", 64, "total batch that the learning rate is for")
	f.Float64Var(&o.Rate, "rate", 0.1, "learning rate")
	f.Float64Var(&o.Iterations, "iterations", 1000, "work to do, in steps of that batch")
	scaling := f.String("scaling", string(goodput.AdaScale), "how the learning rate grows with the batch, unless a scheduler says: adascale, square_root or linear")
	f.DurationVar(&o.CheckpointEvery, "checkpoint-every", 10*time.Second, "time between checkpoints; 0 for one at the end")
	f.DurationVar(&o.ReportEvery, "report-every", time.Second, "time between reports")
	profile := f.String("profile", "", "profile to take times, noise, batch and iterations from")
	f.Float64Var(&o.Speedup, "speedup", 1, "how many seconds of the profile pass in one")
	f.IntVar(&o.StandIn, "stand-in", 1, "samples of the profile for which one is trained on")
	f.DurationVar(&o.Least, "least-step", 0, "shortest step: one step is taken for as many of the profile as last so long")
	f.DurationVar(&o.StartUp, "start-up", 0, "time of the profile from the start of the job to its first step")
	f.IntVar(&o.Replicas, "replicas", 0, "replicas to start on this machine")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.Scaling = goodput.ScalingRule(*scaling)

	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	if *profile != "" {
		given := make(map[string]bool)
		f.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if err := o.readProfile(*profile, given); err != nil {
			problems = append(problems, fmt.Errorf("-profile: %w", err))
		}
	}
	check(f.NArg() == 0, "%q is not understood", strings.Join(f.Args(), " "))
	check(o.Model == modelSoftmax || o.Model == modelMLP, "-model: %q is neither softmax nor mlp", o.Model)
	check(slices.Contains(scalings, o.Scaling), "-scaling: %q is none of adascale, square_root and linear", o.Scaling)
	positive := func(name string, n, most int) {
		check(n >= 1 && n <= most, "-%s: %d is not from 1 to %d", name, n, most)
	}
	positive("samples", o.Samples, 10_000_000)
	positive("features", o.Features, 10_000)
	positive("classes", o.Classes, 10_000)
	positive("hidden", o.Hidden, 10_000)
	positive("batch", o.Batch, 10_000_000)
	positive("stand-in", o.StandIn, 10_000_000)
	check(o.StandIn == 1 || *profile != "", "-stand-in: only a profile has samples to stand for")
	check(o.StartUp >= 0 && o.StartUp <= 24*time.Hour, "-start-up: %v is not from 0 to a day", o.StartUp)
	check(o.StartUp == 0 || *profile != "", "-start-up: only a profile has a time of its own")
	check(o.Least >= 0 && o.Least <= time.Minute, "-least-step: %v is not from 0 to a minute", o.Least)
	check(o.Least == 0 || *profile != "", "-least-step: only a profile has steps to take together")
	check(o.Replicas >= 0 && o.Replicas <= 1024, "-replicas: %d is not from 0 to 1024", o.Replicas)
	check(o.Rate > 0 && o.Rate < 1e6, "-rate: %v is not above 0", o.Rate)
	check(o.Iterations > 0 && o.Iterations < 1e12, "-iterations: %v is not above 0", o.Iterations)
	check(o.Speedup > 0 && o.Speedup < 1e9, "-speedup: %v is not above 0", o.Speedup)
	check(o.CheckpointEvery >= 0, "-checkpoint-every: %v is below 0", o.CheckpointEvery)
	check(o.ReportEvery >= 0, "-report-every: %v is below 0", o.ReportEvery)
	return o, errors.Join(problems...)
}

// readProfile takes from a profile what was not given.
func (o *options) readProfile(file string, given map[string]bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p, err := goodput.ReadProfile(file, text)
	if err != nil {
		return err
	}
	o.Profile = &p
	if !given["batch"] {
		o.Batch = p.Batch.Initial
	}
	if !given["iterations"] {
		o.Iterations = float64(p.Epochs) * p.IterationsPerEpoch
	}
	return nil
}
