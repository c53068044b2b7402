package kube

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func counterSet(name string, units int64) resourcev1.CounterSet {
	return resourcev1.CounterSet{Name: name, Counters: map[string]resourcev1.Counter{"units": {Value: *resource.NewQuantity(units, resource.DecimalSI)}}}
}

func consumes(set string, units int64) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourcev1.DeviceCounterConsumption{
			CounterSet: set, Counters: counterSet("", units).Counters,
		})
	}
}
