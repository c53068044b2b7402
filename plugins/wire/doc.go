// Package wire carries the language of core over the protocol quartet.stage.v1: conversions, lists sent by their
// edits, and a view kept as a copy by its changes. The host and the SDK meet here.
package wire
