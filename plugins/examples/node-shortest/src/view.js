// The copy of the view, kept up to date by updates.
'use strict';
const { values } = require('./contract');

const { HEALTH_READY, HEALTH_DOWN, HEALTH_PROVISIONING } = values('Health');
const { JOB_STATE_WAITING, JOB_STATE_RUNNING } = values('JobState');

// bits counts the devices of a seat, a 64-bit set.
function bits(set) {
  let count = 0;
  for (let half of [set.low, set.high]) {
    for (half >>>= 0; half !== 0; half = (half & (half - 1)) >>> 0) count++;
  }
  return count;
}

class View {
  constructor() {
    this.started = false;
  }

  // apply takes an update in. It returns false, and changes nothing, when the host must send the view whole.
  apply(update) {
    const sequence = Number(update.sequence);
    if (!update.full && (!this.started || sequence !== this.sequence + 1)) return false;
    if (update.full) {
      this.started = true;
      this.nodes = [];
      this.jobs = new Map(); // by id
      this.pools = update.pools || [];
    }
    this.sequence = sequence;
    this.now = update.now_seconds;
    for (const node of update.nodes) {
      const known = update.full ? { devices: node.devices, pool: node.pool || '' } : this.nodes[node.id];
      this.nodes[node.id] = { devices: known.devices, pool: known.pool, health: node.health, expected: node.expected_seconds || 0 };
    }
    for (const sent of update.jobs) this.take(sent);
    for (const id of update.ended) this.jobs.delete(id);
    return true;
  }

  take(sent) {
    let job = this.jobs.get(sent.id);
    if (!job) {
      if (!sent.spec) throw new Error(`job ${sent.id} is sent without its specification`);
      job = { id: sent.id, spec: sent.spec, response: null };
      this.jobs.set(sent.id, job);
    }
    job.state = sent.state;
    job.seats = sent.seats;
    job.held = sent.seats.reduce((sum, seat) => sum + bits(seat.devices), 0);
    if (sent.response) job.response = { min: sent.response.min_replicas, max: sent.response.max_replicas };
  }

  // candidates are the jobs that compete for devices, by id.
  candidates() {
    return [...this.jobs.values()].filter((job) => this.runs(job) || job.state === JOB_STATE_WAITING).sort((a, b) => a.id - b.id);
  }

  runs(job) {
    return job.state === JOB_STATE_RUNNING;
  }

  // mustStay tells whether a job is pinned to the devices that it holds.
  mustStay(job) {
    return job.spec.pinned && this.runs(job) && job.held >= job.response.min && job.held <= job.response.max &&
      job.seats.every((seat) => this.nodes[seat.node].health === HEALTH_READY);
  }

  // poolSize is how many nodes a pool has or gets, without those that leave.
  poolSize(name) {
    const stays = [HEALTH_READY, HEALTH_DOWN, HEALTH_PROVISIONING];
    return this.nodes.filter((node) => node.pool === name && stays.includes(node.health)).length;
  }

  // devices are those of ready nodes.
  devices() {
    return this.nodes.reduce((sum, node) => sum + (node.health === HEALTH_READY ? node.devices : 0), 0);
  }
}

module.exports = { View, bits };
