// Package kubetrainee plays the processes of trainings on a test cluster, whose simulated nodes run every pod without one.
//
// It trains in each running pod that says, in the annotations of its template, what there is to do:
//
//	trainee.quartet.sched/work                what a job has to do, in seconds of one replica
//	trainee.quartet.sched/efficiency          n replicas do n^efficiency in a second; 1 if absent
//	trainee.quartet.sched/report_seconds      time between reports; 1 if absent
//	trainee.quartet.sched/checkpoint_seconds  time between checkpoints; 5 if absent
//	trainee.quartet.sched/gradient_noise      variance of its gradient over its squared norm; not reported if absent
//	trainee.quartet.sched/batch_per_device    samples of a device in a pass, until it is tuned; 1 if absent
//	trainee.quartet.sched/profile             text of a profile (docs/profiles.md) by which it goes, as it would in the simulator;
//	                                          in place of work, efficiency, gradient_noise and batch_per_device
//	trainee.quartet.sched/batch               total batch that a job with a profile asks for; the initial one if absent
//	trainee.quartet.sched/worlds              whether it takes another world while it runs; true if absent
//
// Pods that have an agent speak with the scheduler as package agent has it, with a token for that very pod; what a job has
// done is kept from run to run, up to its last checkpoint. In those without one it begins anew in each run. A pod succeeds when
// the work is done or the scheduler asked it to stop, and exits with 143 when it is deleted.
package kubetrainee
