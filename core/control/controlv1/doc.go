// Package controlv1 is the contract between a running scheduler and those who give it orders, generated from
// control.proto: `make generate`.
package controlv1

//go:generate ./generate
