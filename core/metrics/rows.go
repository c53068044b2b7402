package metrics

import "github.com/quartet-sched/quartet/core"

// Job is what a run came to for one job: a row of jobs.csv. Times are in seconds; a Number that is not known is NaN.
type Job struct {
	ID                core.JobID // id of the job, in order of submission from 0
	Name, Application string     // names of the job and of the application it trains
	SubmitSeconds     float64    // moment of its submission, in seconds of the run
	FirstStartSeconds Number     // moment it first held devices, in seconds of the run; NaN if it never did
	FinishSeconds     Number     // moment it ended, in seconds of the run; NaN if it did not
	JCTSeconds        Number     // of completed jobs
	QueueingSeconds   Number     // seconds from the submission to the first start; NaN if it never started
	ReplicasMean      Number     // while it held devices
	Restarts          int        // starts and moves after the first start
	GPUSeconds        float64    // attained service, in GPU seconds
	Outcome           string     // completed, rejected, failed, cancelled or unfinished
	DeadlineSeconds   float64    // after its submission, by which it is to be done; 0 for whenever
	Cost              Number     // of the devices of pools that it held; 0 without pools
	Tier              string     // service that it is guaranteed; empty for none
	Experiment        string     // search that it is a trial of; empty for none
}

// Jobs lists every submitted job in order of submission. It is called after Finish.
func (c *Collector) Jobs() []Job {
	list := make([]Job, 0, len(c.records))
	for i := range c.records {
		r := &c.records[i]
		if r.spec == nil {
			continue
		}
		list = append(list, Job{
			ID: r.spec.ID, Name: r.spec.Name, Application: r.spec.Application, SubmitSeconds: r.spec.SubmitSeconds,
			FirstStartSeconds: Number(r.firstStart), FinishSeconds: Number(r.finish), JCTSeconds: Number(r.jct()),
			QueueingSeconds: Number(r.queueing()), ReplicasMean: Number(r.replicasMean(c.types)), Restarts: int(r.restarts),
			GPUSeconds: r.attained, Outcome: outcomeNames[r.outcome],
			DeadlineSeconds: r.spec.DeadlineSeconds, Cost: Number(c.bill.cost(r.spec.ID)), Tier: r.spec.Tier, Experiment: r.spec.Experiment,
		})
	}
	return list
}
