// Package kubetest gives tests a control plane. It is for Linux.
package kubetest
