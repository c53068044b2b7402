// Package kube is what the commands of people do on a Kubernetes cluster: by their own kubeconfig and rights, directly at the API
// server. Nothing here asks a scheduler, and there need not be one. Answers have the form of those of a scheduler's socket, so
// that they are shown alike.
//
// All moments are in seconds since 1970 (Unix time): the clock of the scheduler's run is not for everybody to read.
package kube
