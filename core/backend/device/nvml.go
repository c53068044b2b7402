//go:build cgo && linux && nvml

package device

import (
	"context"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library asks the driver's library, at a path or, if that is empty, where the system has it. The symbols of the library are
// bound when they are first called, so that the program starts without it; linked with -z now, or started with LD_BIND_NOW,
// it would not.
func library(path string) source {
	return source{"NVML", func(ctx context.Context) ([]Device, error) {
		var options []nvml.LibraryOption
		if path != "" {
			options = append(options, nvml.WithLibraryPath(path))
		}
		if err := ctx.Err(); err != nil { // its calls cannot be ended
			return nil, err
		}
		return ask(nvml.New(options...))
	}}
}

func ask(l nvml.Interface) ([]Device, error) {
	switch ret := l.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, absent("libnvidia-ml.so.1 was not found")
	default:
		return nil, fmt.Errorf("initialise: %w", ret)
	}
	defer func() { _ = l.Shutdown() }() // all is known by then
	count, ret := l.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count: %w", ret)
	}
	// A symbol that an old library lacks ends the program when it is called.
	knowsMIG := true
	for _, symbol := range [...]string{"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"} {
		knowsMIG = knowsMIG && l.Extensions().LookupSymbol(symbol) == nil
	}
	var devices []Device
	for i := range count {
		handle, ret := l.DeviceGetHandleByIndex(i)
		if ret == nvml.ERROR_NO_PERMISSION {
			continue // for others to use
		}
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("device %d: %w", i, ret)
		}
		d, err := describe(handle, i, knowsMIG)
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
		devices = append(devices, d)
		if !d.MIG {
			continue
		}
		instances, err := instancesOf(handle, &d)
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
		devices = append(devices, instances...)
	}
	return devices, nil
}

// instancesOf lists the instances of a device that is divided. Their numbers have gaps.
func instancesOf(handle nvml.Device, of *Device) (list []Device, err error) {
	most, ret := handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count instances: %w", ret)
	}
	for i := range most {
		part, ret := handle.GetMigDeviceHandleByIndex(i)
		switch ret {
		case nvml.SUCCESS:
		case nvml.ERROR_NOT_FOUND, nvml.ERROR_NO_PERMISSION:
			continue
		default:
			return nil, fmt.Errorf("instance %d: %w", i, ret)
		}
		d, err := describe(part, of.Index, false)
		if err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		_, profile, told := strings.Cut(d.Model, " MIG ")
		if !told {
			return nil, fmt.Errorf("instance %d is called %q, which names no profile", i, d.Model)
		}
		d.Model, d.Profile, d.Instance = of.Model, profile, i
		list = append(list, d)
	}
	return list, nil
}

func describe(handle nvml.Device, index int, knowsMIG bool) (Device, error) {
	d := Device{Index: index}
	var ret nvml.Return
	if d.UUID, ret = handle.GetUUID(); ret != nvml.SUCCESS {
		return d, fmt.Errorf("UUID: %w", ret)
	}
	if d.Model, ret = handle.GetName(); ret != nvml.SUCCESS {
		return d, fmt.Errorf("name: %w", ret)
	}
	switch memory, ret := handle.GetMemoryInfo(); ret {
	case nvml.SUCCESS:
		d.MemoryMiB = int(memory.Total >> 20)
	case nvml.ERROR_NOT_SUPPORTED: // it shares the memory of the processor
	default:
		return d, fmt.Errorf("memory: %w", ret)
	}
	if !knowsMIG {
		return d, nil
	}
	switch mode, _, ret := handle.GetMigMode(); ret {
	case nvml.SUCCESS:
		d.MIG = mode == nvml.DEVICE_MIG_ENABLE
	case nvml.ERROR_NOT_SUPPORTED:
	default:
		return d, fmt.Errorf("MIG mode: %w", ret)
	}
	return d, nil
}
