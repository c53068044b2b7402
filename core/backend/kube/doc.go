// Package kube is the backend of a Kubernetes cluster. Its jobs are TrainingJobs, whose pods it makes and binds by itself.
//
// What a round decides is written into the status of the jobs that it changes. That alone is durable: workers drive the pods of
// each job to its decision (package gang), whoever leads (package lead), and do nothing where nothing is to be done. So a
// scheduler that is killed, or replaced by one of another version or composition, leaves nothing undone that the next one does
// not see: it reads jobs, nodes and pods, learns nothing from its predecessor but what the status holds, and continues.
//
// What happens is found by comparison. Informers keep what there is; before a round it is compared with what the pipeline was
// reported, and what differs becomes events. No notification is counted, none has to arrive.
package kube
