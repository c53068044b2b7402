// Package proto holds the contract between host and plugin. The Go code beside it, and the Python code of
// plugins/python, are generated: `make generate`.
package proto

//go:generate ./generate
