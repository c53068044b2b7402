// Package queue is what most allocators are made of: an order of the candidates that is kept from round to round, a walk along
// it that hands out devices under a queue discipline, and the devices that a job could hold at most, by accelerator type.
//
// Devices are those of ready nodes; whether a job can be seated on them is for the placer to say.
package queue
