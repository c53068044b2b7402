//go:build !cgo || !linux || !nvml

package device

import "context"

// library stands for the driver's library, which is asked through cgo.
func library(string) source {
	return source{"NVML", func(context.Context) ([]Device, error) {
		return nil, absent("NVML is used by Linux programs built with cgo and -tags nvml")
	}}
}
