package core

// Once counts devices that jobs hold, each once however many jobs are on it. Where devices are exclusive it costs nothing but the count.
type Once struct {
	counted []DeviceSet // by node; empty where devices are exclusive
}

// Reset forgets what was counted. O(nodes) where jobs may share devices, O(1) elsewhere.
func (o *Once) Reset(c *Cluster) {
	if o.counted = o.counted[:0]; c.Sharing != Exclusive {
		o.counted = append(o.counted, make([]DeviceSet, len(c.Nodes))...)
	}
}

// Count is how many devices of a seat were not counted before.
func (o *Once) Count(s Seat) int {
	if len(o.counted) > 0 {
		before := o.counted[s.Node]
		o.counted[s.Node] |= s.Devices
		s.Devices &^= before
	}
	return s.Devices.Count()
}
