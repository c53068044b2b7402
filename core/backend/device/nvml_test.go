//go:build cgo && linux && nvml

package device

import (
	"errors"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// fakeLibrary answers as the driver's library does. What it does not need, it does not have.
type fakeLibrary struct {
	nvml.Interface
	nvml.ExtendedInterface
	init, count nvml.Return
	old         bool // it knows nothing of MIG
	devices     []*fakeDevice
	shut        int
}

func (l *fakeLibrary) Init() nvml.Return                  { return l.init }
func (l *fakeLibrary) Shutdown() nvml.Return              { l.shut++; return nvml.SUCCESS }
func (l *fakeLibrary) DeviceGetCount() (int, nvml.Return) { return len(l.devices), l.count }
func (l *fakeLibrary) Extensions() nvml.ExtendedInterface { return l }

func (l *fakeLibrary) DeviceGetHandleByIndex(i int) (nvml.Device, nvml.Return) {
	return l.devices[i], l.devices[i].handle
}

func (l *fakeLibrary) LookupSymbol(name string) error {
	if l.old && name == "nvmlDeviceGetMigMode" {
		return errors.New("no such symbol")
	}
	return nil
}

type fakeDevice struct {
	nvml.Device
	id, model                        string
	memory                           uint64
	mode                             int
	handle, named, remembers, modeOf nvml.Return
	instances                        []*fakeDevice
	counted                          nvml.Return
}

func (d *fakeDevice) GetMaxMigDeviceCount() (int, nvml.Return) { return len(d.instances), d.counted }

func (d *fakeDevice) GetMigDeviceHandleByIndex(i int) (nvml.Device, nvml.Return) {
	return d.instances[i], d.instances[i].handle
}

func (d *fakeDevice) GetUUID() (string, nvml.Return) { return d.id, nvml.SUCCESS }
func (d *fakeDevice) GetName() (string, nvml.Return) { return d.model, d.named }
func (d *fakeDevice) GetMemoryInfo() (nvml.Memory, nvml.Return) {
	return nvml.Memory{Total: d.memory}, d.remembers
}
func (d *fakeDevice) GetMigMode() (int, int, nvml.Return) { return d.mode, 0, d.modeOf }

func TestAsk(t *testing.T) {
	h100 := fakeDevice{id: firstID, model: "NVIDIA H100 80GB HBM3", memory: 81559 << 20}
	const partModel = "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
	divided := fakeDevice{id: secondID, model: "NVIDIA H100 80GB HBM3", memory: 81559<<20 + 1, mode: nvml.DEVICE_MIG_ENABLE}
	cases := map[string]struct {
		library fakeLibrary
		want    []Device
		wantErr string
	}{
		"two devices, one divided": {
			library: fakeLibrary{devices: []*fakeDevice{&h100, &divided}},
			want: []Device{
				{Index: 0, UUID: firstID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559},
				{Index: 1, UUID: secondID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, MIG: true},
			},
		},
		"what a device does not have": {
			library: fakeLibrary{devices: []*fakeDevice{{id: firstID, model: "NVIDIA GB10", remembers: nvml.ERROR_NOT_SUPPORTED, modeOf: nvml.ERROR_NOT_SUPPORTED}}},
			want:    []Device{{UUID: firstID, Model: "NVIDIA GB10"}},
		},
		"an old library is not asked about MIG": {
			library: fakeLibrary{old: true, devices: []*fakeDevice{{id: firstID, model: "Tesla K80", modeOf: nvml.ERROR_UNKNOWN}}},
			want:    []Device{{UUID: firstID, Model: "Tesla K80"}},
		},
		"a device of others": {
			library: fakeLibrary{devices: []*fakeDevice{{handle: nvml.ERROR_NO_PERMISSION}, {id: secondID, model: "Tesla T4"}}},
			want:    []Device{{Index: 1, UUID: secondID, Model: "Tesla T4"}},
		},
		"instances, with gaps and some of others": {
			library: fakeLibrary{devices: []*fakeDevice{{id: firstID, model: "NVIDIA H100 80GB HBM3", mode: nvml.DEVICE_MIG_ENABLE, instances: []*fakeDevice{
				{handle: nvml.ERROR_NOT_FOUND}, {id: partID, model: partModel, memory: 40448 << 20, mode: nvml.DEVICE_MIG_ENABLE}, {handle: nvml.ERROR_NO_PERMISSION},
			}}}},
			want: []Device{
				{UUID: firstID, Model: "NVIDIA H100 80GB HBM3", MIG: true},
				{UUID: partID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 40448, Profile: "3g.40gb", Instance: 1},
			},
		},
		"no count of instances": {
			library: fakeLibrary{devices: []*fakeDevice{{id: firstID, model: "T", mode: nvml.DEVICE_MIG_ENABLE, counted: nvml.ERROR_UNKNOWN}}},
			wantErr: "device 0: count instances: ERROR_UNKNOWN",
		},
		"a lost instance": {
			library: fakeLibrary{devices: []*fakeDevice{{id: firstID, model: "T", mode: nvml.DEVICE_MIG_ENABLE, instances: []*fakeDevice{{handle: nvml.ERROR_GPU_IS_LOST}}}}},
			wantErr: "device 0: instance 0: ERROR_GPU_IS_LOST",
		},
		"an instance that tells nothing": {
			library: fakeLibrary{devices: []*fakeDevice{{id: firstID, model: "T", mode: nvml.DEVICE_MIG_ENABLE, instances: []*fakeDevice{{model: partModel, remembers: nvml.ERROR_UNKNOWN}}}}},
			wantErr: "device 0: instance 0: memory: ERROR_UNKNOWN",
		},
		"an instance without a profile": {
			library: fakeLibrary{devices: []*fakeDevice{{id: firstID, model: "T", mode: nvml.DEVICE_MIG_ENABLE, instances: []*fakeDevice{{model: "T"}}}}},
			wantErr: `instance 0 is called "T", which names no profile`,
		},
		"none":             {},
		"no kernel module": {library: fakeLibrary{init: nvml.ERROR_DRIVER_NOT_LOADED}, wantErr: "initialise: ERROR_DRIVER_NOT_LOADED"},
		"no count":         {library: fakeLibrary{count: nvml.ERROR_UNKNOWN}, wantErr: "count: ERROR_UNKNOWN"},
		"a lost device":    {library: fakeLibrary{devices: []*fakeDevice{{handle: nvml.ERROR_GPU_IS_LOST}}}, wantErr: "device 0: ERROR_GPU_IS_LOST"},
		"no name":          {library: fakeLibrary{devices: []*fakeDevice{&h100, {id: secondID, named: nvml.ERROR_UNKNOWN}}}, wantErr: "device 1: name: ERROR_UNKNOWN"},
		"no memory":        {library: fakeLibrary{devices: []*fakeDevice{{remembers: nvml.ERROR_UNKNOWN}}}, wantErr: "device 0: memory: ERROR_UNKNOWN"},
		"no mode":          {library: fakeLibrary{devices: []*fakeDevice{{modeOf: nvml.ERROR_UNKNOWN}}}, wantErr: "device 0: MIG mode: ERROR_UNKNOWN"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ask(&tc.library)
			compare(t, got, err, tc.want, tc.wantErr)
			want := 1
			if tc.library.init != nvml.SUCCESS {
				want = 0
			}
			if tc.library.shut != want {
				t.Errorf("shut down %d times, want %d", tc.library.shut, want)
			}
		})
	}
}

func TestAbsentLibrary(t *testing.T) {
	_, err := ask(&fakeLibrary{init: nvml.ERROR_LIBRARY_NOT_FOUND})
	if missing := absent(""); !errors.As(err, &missing) {
		t.Errorf("error %v, want that it is absent", err)
	}
}
