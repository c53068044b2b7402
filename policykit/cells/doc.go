// Package cells gives tenants virtual private clusters on a shared one.
//
// A cell is a group of devices that lie close together: a device, those behind a switch, a node, a rack. A cell of one level is
// split into equal cells of the level below it, its buddies. A tenant is promised a multiset of cells by level and accelerator type, its
// virtual cluster. A virtual cell is bound to a physical one while a job uses it, to any that is free; so what a tenant gets does
// not depend on what the others do, and nobody's devices lie in pieces for another one.
//
// Source: Zhao et al., HiveD (OSDI'20): cells, buddy allocation, dynamic binding, sharing safety. Deviations: a group of devices
// that is smaller than the others of its level, or has a broken device, is no cell of it, and its parts stand alone. Jobs that nobody
// promised anything to, the guests, are placed by the same package, on free cells of the highest level first.
package cells
