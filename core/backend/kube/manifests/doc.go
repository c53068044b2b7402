// Package manifests holds what installs the controller on a cluster: roles, the deployment, services, a network policy, a
// budget of disruptions and a dashboard, as the YAML of a Kustomize tree (base, components, overlays). [Render] makes one
// stream of it for kubectl, [Chart] a Helm chart and [Kustomize] the tree itself, all from the same files.
//
// The custom resource is the caller's: package trainingjob owns it.
package manifests
