// The page of a run.
'use strict';
Q.run = first => {
  const { $, span, digits, percent, make, table } = Q, chart = (parent, o) => Q.chart(parent, { again: true, ...o });
  let data, column, horizon, names, why, rows, view = null, chosen = null, bound = false;

  // show draws what the data hold, for the first time or in the place of what was drawn.
  function show(next) {
    data = next; column = data.column; horizon = data.value('horizon'); names = data.value('names'); why = data.value('whys') || []; rows = null;
    curves();
    Q.figures(data, { again: true });
    devices();
    jobs();
  }

  function curves() {
    // Over time.
    const over = $('over'), series = (title, x, list, more) => chart(over, { title, x, sync: 'time', series: list.filter(s => s.y), ...more });
    const t = column('usage.at') || column('rounds.at');
    if (over && t && t.length) {
      const of = name => column('usage.' + name) || column('rounds.' + name);
      const step = (label, y) => ({ label, y, step: true });
      series('Devices', t, [step('held', of('used')), step('ready', of('ready')), step('asked for', of('demand'))]);
      series('Jobs', t, [step('running', of('running')), step('waiting', of('waiting'))]);
      if (of('efficiency')) series('Statistical efficiency, mean over the devices that run', t, [step('efficiency', of('efficiency'))], { format: percent });
      if (of('goodput')) series('Goodput, mean over the devices that run', t, [step('goodput', of('goodput'))]);
      if (of('nodes')) series('Nodes of pools that are paid for', t, [step('nodes', of('nodes'))]);
      if (of('cost')) series('Cost of the pools', t, [{ label: 'cost', y: of('cost') }]);
    }
    const gap = column('rounds.gap');
    if ($('gap') && gap) chart($('gap'), { title: 'Certified gap of the allocation', x: column('rounds.at'), series: [{ label: 'gap', y: gap, step: true }], format: percent, sync: 'time' });

    // Distributions.
    for (const d of data.value('cdfs') || []) {
      const x = column('cdf.' + d.key), n = x.length, y = Float64Array.from(x, (_, i) => n === 1 ? d.high : d.low + (d.high - d.low) * i / (n - 1));
      chart($('cdfs'), { title: d.title, x, log: true, xFormat: d.seconds ? span : digits, xLabel: d.title, series: [{ label: 'share of jobs', y, step: true }], format: percent, top: 1 });
    }

    // Waiting by reason.
    const reasons = data.value('reasons');
    if ($('reasons') && reasons && reasons.length) chart($('reasons'), { title: 'Pending jobs by reason', x: column('waiting.at'), sync: 'time', series: reasons.map((label, i) => ({ label, y: column('waiting.' + i), step: true })) });
  }

  // life lists waits and stays of a job.
  const byJob = (name, key) => { const list = column(name); if (list) for (let i = 0; i < list.length; i++) { let r = rows.get(list[i]); if (!r) rows.set(list[i], r = { stays: [], waits: [], tunes: [] }); r[key].push(i); } };
  const life = j => { if (!rows) { rows = new Map(); byJob('stays.job', 'stays'); byJob('waits.job', 'waits'); byJob('tunes.job', 'tunes'); } return rows.get(j) || { stays: [], waits: [], tunes: [] }; };
  const wanted = i => { const w = column('waits.wanted')[i], a = column('waits.available')[i]; return Number.isNaN(w) ? '' : `, ${digits(w)} wanted, ${digits(a)} available`; };
  Q.verdict = (j, at) => {
    const waits = life(j).waits.filter(i => column('waits.end')[i] <= at + .01);
    if (!waits.length) return '';
    const i = waits[waits.length - 1];
    return `; before, it was pending for ${why[column('waits.reason')[i]]} for ${span(column('waits.end')[i] - column('waits.start')[i])}${wanted(i)}`;
  };

  // The device timeline.
  function devices() {
    const canvas = $('timeline');
    if (!canvas) { view = null; return; }
    if (view) { view.renew(data, horizon); return; }
    view = Q.timeline(canvas, $('tip'), data, horizon, j => select(j));
    $('closer').addEventListener('click', () => view.zoom(.5));
    $('farther').addEventListener('click', () => view.zoom(2));
    $('whole').addEventListener('click', () => view.whole());
  }

  // One job.
  function select(j) {
    const one = $('one');
    if (!one) return;
    if (chosen !== names[j]) one.style.minHeight = '';
    chosen = names[j];
    one.replaceChildren();
    make('h3', names[j], one);
    const facts = make('dl', null, one); facts.className = 'facts';
    const fact = (k, v) => { make('dt', k, facts); make('dd', v, facts); };
    const apps = data.value('applications'), outcomes = data.value('outcomes');
    const trials = data.value('experiments');
    if (trials && trials[column('jobs.experiment')[j]]) fact('experiment', trials[column('jobs.experiment')[j]]);
    if (apps[column('jobs.application')[j]]) fact('application', apps[column('jobs.application')[j]]);
    fact('outcome', outcomes[column('jobs.outcome')[j]] || '–');
    fact('submitted', span(column('jobs.submit')[j]));
    fact('waited for its first devices', span(column('jobs.queueing')[j]));
    fact('completion time', span(column('jobs.jct')[j]));
    fact('restarts', digits(column('jobs.restarts')[j]));
    fact('device time', span(column('jobs.usage')[j]));
    const of = (name, j) => { const c = column(name); return c ? c[j] : NaN; };
    if (!Number.isNaN(of('jobs.milli', j))) fact('part of each device', percent(of('jobs.milli', j) / 1000));
    if (of('jobs.shared', j) > 0) fact('time beside others', span(of('jobs.shared', j)));
    if (of('jobs.lost', j) > 0) fact('time lost to them', span(of('jobs.lost', j)));
    for (const f of data.value('extras') || []) fact(f.label, digits(column(f.key)[j]));
    const l = life(j), events = [];
    const ss = column('stays.start'), se = column('stays.end'), x = [], y = [];
    for (const i of l.stays) {
      if (!x.length || x[x.length - 1] < ss[i]) { if (!x.length) { x.push(Math.min(column('jobs.submit')[j] || 0, ss[i] - 1e-3)); y.push(0); } x.push(ss[i]); y.push(column('stays.replicas')[i]); } else y[y.length - 1] = column('stays.replicas')[i];
      x.push(se[i]); y.push(0);
      const types = data.value('types')[column('stays.type')[i]];
      events.push([ss[i], 'on devices', `${digits(column('stays.replicas')[i])}${types ? ' of ' + types : ''} until ${span(se[i])}, ${data.value('hows')[column('stays.how')[i]]}`]);
    }
    for (const i of l.waits) events.push([column('waits.start')[i], 'waits', `${why[column('waits.reason')[i]]} for ${span(column('waits.end')[i] - column('waits.start')[i])}${wanted(i)}`]);
    const tx = [], ty = [];
    for (const i of l.tunes) { const b = column('tunes.batch')[i], p = column('tunes.passes')[i]; if (!(b > 0)) continue; tx.push(column('tunes.at')[i]); ty.push(b); events.push([column('tunes.at')[i], 'batch', `${digits(b)} on a device${p > 0 ? `, ${digits(p)} passes added` : ''}`]); }
    if (x.length) chart(one, { title: 'Devices it held', x, series: [{ label: 'devices', y, step: true }], sync: 'job' });
    if (tx.length > 1) chart(one, { title: 'Batch on a device', x: tx, series: [{ label: 'batch', y: ty, step: true }], sync: 'job' });
    const paces = []; // moments at which it trained otherwise
    (column('paces.job') || []).forEach((of, i) => { if (of === j) paces.push(i); });
    if (paces.length) {
      const of = name => paces.map(i => column('paces.' + name)[i] || 0), px = of('at'); // 0 while it has no devices
      chart(one, { title: 'Batch, over all its devices', x: px, series: [{ label: 'batch', y: of('batch'), step: true }], sync: 'job' });
      chart(one, { title: 'Its statistical efficiency', x: px, series: [{ label: 'efficiency', y: of('efficiency'), step: true }], format: percent, sync: 'job' });
    }
    const told = data.value('metrics') || [], points = told.map(() => ({ x: [], y: [] })); // what it reported of itself
    (column('reports.job') || []).forEach((of, i) => { if (of === j) { const p = points[column('reports.metric')[i]]; p.x.push(column('reports.step')[i]); p.y.push(column('reports.value')[i]); } });
    told.forEach((name, k) => { if (points[k].x.length) chart(one, { title: `Its ${name}, by step`, x: points[k].x, xLabel: 'step', xFormat: digits, series: [{ label: name, y: points[k].y, points: true }] }); });
    const ct = column('usage.at') || column('rounds.at'), cw = column('usage.waiting') || column('rounds.waiting'), cr = column('usage.running') || column('rounds.running');
    if (ct && cw && cr && x.length) {
      const cx = [], c1 = [], c2 = [];
      for (let i = 0; i < ct.length; i++) if (ct[i] >= x[0] && ct[i] <= x[x.length - 1]) { cx.push(ct[i]); c1.push(cr[i]); c2.push(cw[i]); }
      if (cx.length > 1) chart(one, { title: 'Contention: the other jobs in its time', x: cx, series: [{ label: 'running', y: c1, step: true }, { label: 'waiting', y: c2, step: true }], sync: 'job' });
    }
    events.sort((a, b) => a[0] - b[0]);
    table(one, 'What happened to it', [['time', 'what', 'how'], ...events.map(e => [span(e[0]), e[1], e[2]])], true);
    if (view) view.choose(j);
    if (Q.explain) Q.explain(names[j]);
  }
  // Of a job that came since the page was made only its scheduler knows.
  Q.select = name => {
    const j = names.indexOf(name);
    if (j >= 0) { select(j); return; }
    chosen = name;
    $('one').replaceChildren(); make('h3', name, $('one'));
    Q.explain(name);
  };
  function jobs() {
    const search = $('search'), found = $('found');
    if (!search) return;
    if (chosen != null) { // it goes on as long as nobody reads it
      const j = names.indexOf(chosen), one = $('one');
      one.style.minHeight = one.offsetHeight + 'px'; // what is below stays where it is
      if (j >= 0 && !one.contains(document.activeElement)) select(j); else if (view && j >= 0) view.choose(j);
    } else if (names.length) { select(data.value('longest')); chosen = null; }
    if (bound) return;
    bound = true;
    const look = () => {
      const text = search.value.trim().toLowerCase(); found.replaceChildren();
      let n = 0;
      for (let i = 0; i < names.length && n < 20; i++) if (names[i].toLowerCase().includes(text)) {
        n++;
        const b = make('button', names[i].length > 80 ? names[i].slice(0, 80) + '…' : names[i], make('li', null, found)); b.type = 'button';
        b.addEventListener('click', () => select(i));
      }
      if (!n) make('li', 'No job has this in its name.', found);
    };
    search.addEventListener('input', look);
    $('longest').addEventListener('click', () => names.length && select(data.value('longest')));
    $('waited').addEventListener('click', () => names.length && select(data.value('waited')));
  }
  if (first.value('live') != null) Q.live(first, show);
  show(first);
};
