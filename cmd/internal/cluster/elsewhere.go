package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// Program is the program that reaches Kubernetes.
const Program = "quartet-kubernetes"

// Backend is the type of the backend that runs jobs on Kubernetes, in configs.
const Backend = "kubernetes"

// errElsewhere is what an engine answers that is not in this program.
var errElsewhere = errors.New("this program does not include Kubernetes")

// Elsewhere is the engine of a program without Kubernetes. Whatever it is asked for ends in an error that IsElsewhere recognises.
func Elsewhere() Engine {
	type notes = func(format string, args ...any)
	decode := func(map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
		return nil, nil, core.Diagnostics{{Summary: errElsewhere.Error()}}
	}
	return Engine{
		Backend: core.NewForeignFactory(core.Info{
			Type: Backend, Summary: "pods of TrainingJobs on a Kubernetes cluster, which survive the scheduler",
		}, core.Foreign{
			Fields: func() []core.Field { return nil },
			Schema: func() map[string]any { return map[string]any{"type": "object"} },
			Decode: decode,
		}, func(map[string]any, core.Settings) (backend.Opener, error) { return nil, errElsewhere }),
		Open:   func(Access, notes) (Cluster, error) { return nil, errElsewhere },
		Start:  func(context.Context, Access, notes, []byte) (string, error) { return "", errElsewhere },
		Absent: true,
	}
}

// ErrElsewhere is the error of a command that is only in the program with Kubernetes.
func ErrElsewhere() error { return errElsewhere }

// IsElsewhere reports whether an error says that something is in the program with Kubernetes, and not in this one.
func IsElsewhere(err error) bool {
	if errors.Is(err, errElsewhere) {
		return true
	}
	found, ok := errors.AsType[core.Diagnostics](err)
	return ok && slices.ContainsFunc(found, func(d core.Diagnostic) bool { return d.Summary == errElsewhere.Error() })
}
