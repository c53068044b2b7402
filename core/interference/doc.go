// Package interference says how fast jobs are that share a device.
package interference
