// The policy: those that run stay, and waiting jobs start in the order of their declared work, the shortest first. A job that
// does not fit lets those behind it pass. Jobs that declare no work come last. A round costs a sort of the jobs.
//
// Source: the textbook's shortest job first. Deviation: it does not preempt, unless told to.
'use strict';

const component = {
  type: 'shortest',
  summary: 'short jobs first, others fill in',
  description: 'Waiting jobs start in the order of their declared work. Running ones keep their devices unless preempt is set.',
  capabilities: ['remaining_work'],
};

const settings = [
  { name: 'backfill', default: true, doc: 'Start jobs behind one that does not fit.' },
  { name: 'preempt', default: false, doc: 'Let short jobs take the devices of running ones.' },
];

// allocate returns who gets how many devices, in the order in which they are to be seated.
function allocate(view, config) {
  const queue = view.candidates().map((job) => ({ job, rank: rankOf(view, config, job), work: job.spec.total_work || Infinity }));
  queue.sort((a, b) => a.rank - b.rank || compare(a.work, b.work) || a.job.id - b.job.id);
  let left = view.devices();
  const grants = [];
  for (const { job } of queue) {
    const wanted = view.runs(job) ? job.held : job.spec.requested;
    const replicas = Math.min(Math.max(wanted, job.response.min), job.response.max);
    if (replicas > left) {
      if (config.backfill) continue;
      break;
    }
    left -= replicas;
    grants.push({ job: job.id, accelerator: -1, replicas });
  }
  return grants;
}

// rankOf puts pinned jobs first, then running ones.
function rankOf(view, config, job) {
  if (view.mustStay(job)) return 0;
  return view.runs(job) && !config.preempt ? 1 : 2;
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

module.exports = { component, settings, allocate };
