// Package proto holds the contract between host and plugin. The Go code beside it is generated: `make generate`.
package proto

//go:generate ./generate
