// Package trainingjob is the custom resource by which Kubernetes keeps a job: group quartet.sched, version v1alpha1, kind
// TrainingJob. People own its spec. The scheduler owns its status, which holds what was decided of the job, and applies it by
// the field manager "quartet".
//
// The package has the types, the definition of the resource for the API server, a typed client, and what turns a TrainingJob
// into a core.JobSpec.
package trainingjob
