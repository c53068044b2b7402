// Package kubecluster runs a Kubernetes control plane of one machine for tests and for whoever wants to try: etcd, the API
// server and the controller manager are the real ones, and KWOK plays nodes and what runs on them. There is no kubelet, no
// network of pods and no image: a pod that is bound runs, for as long as an annotation says. It is for Linux.
//
// The programs are built from pinned modules, see tools/controlplane. All state is below one folder, and every address is of
// the loopback.
package kubecluster
