// Package feedback holds the multi-level feedback queues of Tiresias, which tiresias and elastic_tiresias share: a job starts in the
// first queue and sinks as it consumes service.
package feedback
