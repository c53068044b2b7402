// Package fit holds pods to what they ask of nodes besides devices: node selectors and affinities, taints, resources, host ports, affinities
// to other pods, and spreads. It decides as kube-scheduler does, and knows nothing of an API server.
package fit
