'use strict';
require('./setup');
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { X509Certificate, createPrivateKey } = require('node:crypto');
const Long = require('long');
const { View, bits } = require('../src/view');
const { allocate, settings } = require('../src/shortest');
const { decode } = require('../src/settings');
const { newCertificate } = require('../src/certificate');
const { message, values } = require('../src/contract');

const { HEALTH_READY, HEALTH_DRAINING, HEALTH_DOWN, HEALTH_PROVISIONING, HEALTH_GONE } = values('Health');
const { JOB_STATE_PENDING, JOB_STATE_WAITING, JOB_STATE_RUNNING } = values('JobState');

// full is an update with one node of four devices and jobs, each of them [work, requested, state, held, pinned].
function full(jobs) {
  return {
    sequence: 7, full: true, now_seconds: 0, ended: [],
    nodes: [{ id: 0, devices: 4, health: HEALTH_READY }],
    jobs: jobs.map(([total_work, requested, state = JOB_STATE_WAITING, held = 0, pinned = false], id) => ({
      id, state, spec: { total_work, requested, pinned }, response: { min_replicas: 1, max_replicas: 8 },
      seats: held > 0 ? [{ node: 0, devices: Long.fromNumber(2 ** held - 1, true) }] : [],
    })),
  };
}

const cases = {
  'the shortest first, the earlier one of equals': { jobs: [[9, 1], [5, 1], [5, 1]], want: [[1, 1], [2, 1], [0, 1]] },
  'no declared work comes last': { jobs: [[0, 1], [9, 1]], want: [[1, 1], [0, 1]] },
  'one that does not fit lets others pass': { jobs: [[1, 3], [2, 3], [3, 1]], want: [[0, 3], [2, 1]] },
  'one that does not fit holds the others up': { jobs: [[1, 3], [2, 3], [3, 1]], config: { backfill: false }, want: [[0, 3]] },
  'those that run keep what they hold': { jobs: [[9, 1, JOB_STATE_RUNNING, 3], [1, 2], [2, 1]], want: [[0, 3], [2, 1]] },
  'short jobs preempt': { jobs: [[9, 1, JOB_STATE_RUNNING, 3], [1, 2]], config: { preempt: true }, want: [[1, 2]] },
  'a pinned job is not preempted': { jobs: [[9, 1, JOB_STATE_RUNNING, 3, true], [1, 2]], config: { preempt: true }, want: [[0, 3]] },
  'a pending job does not compete': { jobs: [[1, 1, JOB_STATE_PENDING], [2, 1]], want: [[1, 1]] },
  'a request within the range': { jobs: [[1, 0]], want: [[0, 1]] },
};

for (const [name, tc] of Object.entries(cases)) {
  test(name, () => {
    const view = new View();
    assert.ok(view.apply(full(tc.jobs)));
    const got = allocate(view, { backfill: true, preempt: false, ...tc.config }).map((g) => [g.job, g.replicas]);
    assert.deepEqual(got, tc.want);
  });
}

test('an update for another copy is not applied', () => {
  const view = new View();
  const next = { ...full([]), full: false, nodes: [], sequence: 8 };
  assert.equal(view.apply(next), false);
  view.apply(full([]));
  assert.equal(view.apply({ ...next, sequence: 9 }), false);
  assert.equal(view.apply({ ...next, nodes: [{ id: 0, health: HEALTH_DRAINING, devices: 0 }] }), true);
  assert.equal(view.devices(), 0);
});

test('pools and nodes on their way are taken over from the wire', () => {
  const ViewUpdate = message('ViewUpdate');
  const sent = (update) => ViewUpdate.decode(ViewUpdate.encode(ViewUpdate.fromObject(update)).finish());
  const view = new View();
  const nodes = [HEALTH_READY, HEALTH_PROVISIONING, HEALTH_DOWN, HEALTH_DRAINING, HEALTH_GONE].map((health, id) => ({
    id, health, devices: 4, pool: 'p', expected_seconds: health === HEALTH_PROVISIONING ? 90 : 0,
  }));
  const pools = [{ name: 'p', devices: 4, min_nodes: 1, max_nodes: 6, price_per_hour: 2.5, prices: [{ from_seconds: 60, per_hour: 4 }], spot: true }];
  assert.ok(view.apply(sent({ sequence: 1, full: true, accelerators: ['t4'], nodes: [...nodes, { id: 5, health: HEALTH_READY, devices: 2 }], pools })));
  assert.deepEqual([view.pools[0].name, view.pools[0].max_nodes, view.pools[0].prices[0].per_hour, view.pools[0].spot], ['p', 6, 4, true]);
  assert.deepEqual([view.poolSize('p'), view.poolSize(''), view.poolSize('q')], [3, 1, 0]);
  assert.deepEqual([view.nodes[1].expected, view.devices()], [90, 6]);
  assert.ok(view.apply(sent({ sequence: 2, nodes: [{ id: 1, health: HEALTH_READY }] })));
  assert.deepEqual([view.nodes[1].expected, view.nodes[1].pool, view.devices(), view.pools.length], [0, 'p', 10, 1]);
});

test('devices of a seat are counted in all 64 bits', () => {
  assert.equal(bits(Long.MAX_UNSIGNED_VALUE), 64);
  assert.equal(bits(Long.fromString('8000000080000001', true, 16)), 3);
  assert.equal(bits(Long.UZERO), 0);
});

test('every problem of the settings is told', () => {
  const { problems } = decode(settings, '{"backfil": true, "preempt": 1}');
  assert.deepEqual(problems.map((p) => p.path), ['backfil', 'preempt']);
  assert.deepEqual(decode(settings, '{"backfill": false}').config, { backfill: false, preempt: false });
  assert.deepEqual(decode(settings, '').config, { backfill: true, preempt: false });
});

test('the certificate is that of its key and of localhost', () => {
  const { key, pem, handshake } = newCertificate();
  const certificate = new X509Certificate(pem);
  assert.ok(certificate.checkPrivateKey(createPrivateKey(key)));
  assert.ok(certificate.verify(certificate.publicKey));
  assert.equal(certificate.checkHost('localhost'), 'localhost');
  assert.ok(certificate.ca);
  assert.equal(Buffer.from(handshake, 'base64').toString('hex'), certificate.raw.toString('hex'));
});
