// The list of a folder, and the page of a run that goes on.
'use strict';
Q.list = () => {
  const filter = Q.$('filter');
  if (!filter) return;
  const rows = document.querySelectorAll('tbody tr');
  filter.addEventListener('input', () => { const text = filter.value.trim().toLowerCase(); for (const r of rows) r.hidden = !r.textContent.toLowerCase().includes(text); });
};
Q.live = () => {
  const { $, chart, span, digits, make, table } = Q, most = 3600;
  const x = [], used = [], ready = [], running = [], waiting = [];
  let charts = null, last = null;
  Q.$('longest').remove(); Q.$('waited').remove();
  const search = $('search');
  function show() {
    if (!last) return;
    const count = {}; for (const j of last.jobs) count[j[1]] = (count[j[1]] || 0) + 1;
    const box = $('figures'); box.replaceChildren();
    const cards = make('dl', null, box); cards.className = 'cards';
    for (const [k, v] of [['time of the run', span(last.now)], ['devices held', `${last.used} of ${last.devices}`], ...Object.entries(count).map(([k, v]) => [k, digits(v)])]) { const d = make('div', null, cards); make('dt', k, d); make('dd', v, d); }
    $('nodetable').replaceChildren();
    table($('nodetable'), 'Nodes', [['node', 'type', 'held', 'devices', 'health'], ...last.nodes.map(n => n.map(String))]);
    const text = search.value.trim().toLowerCase(), shown = last.jobs.filter(j => j[0].toLowerCase().includes(text));
    $('jobtable').replaceChildren();
    const t = table($('jobtable'), shown.length > 200 ? `The first 200 of ${digits(shown.length)} jobs` : 'Jobs', [['job', 'state', 'why', 'devices', 'submitted'], ...shown.slice(0, 200).map(j => [j[0], j[1], j[2], digits(j[3]), j[4] == null ? '–' : span(j[4])])], true);
    t.querySelectorAll('tbody tr').forEach((r, i) => { const cell = r.firstChild, b = make('button', shown[i][0]); b.type = 'button'; cell.replaceChildren(b); b.addEventListener('click', () => tell(shown[i][0])); });
  }
  function take(e) {
    last = e;
    const count = state => e.jobs.reduce((n, j) => n + (j[1] === state), 0);
    if (!x.length || e.now > x[x.length - 1]) { x.push(e.now); used.push(e.used); ready.push(e.ready); running.push(count('running')); waiting.push(count('waiting')); }
    if (x.length > most) for (const list of [x, used, ready, running, waiting]) list.shift();
    if (!charts) charts = [
      chart($('over'), { title: 'Devices', x, series: [{ label: 'held', y: used, step: true }, { label: 'ready', y: ready, step: true }], sync: 'time' }),
      chart($('over'), { title: 'Jobs', x, series: [{ label: 'running', y: running, step: true }, { label: 'waiting', y: waiting, step: true }], sync: 'time' })];
    else { charts[0].update(x, [used, ready]); charts[1].update(x, [running, waiting]); }
    const at = document.activeElement; // a table in use is left alone
    if (!at || !$('jobtable').contains(at)) show();
  }
  async function tell(name) {
    const one = $('one');
    try {
      const answer = await fetch('job?name=' + encodeURIComponent(name));
      const d = await answer.json();
      one.replaceChildren();
      make('h3', name, one);
      if (d.error) { make('p', d.error, one); return; }
      const facts = make('dl', null, one); facts.className = 'facts';
      for (const [k, v] of d.facts) if (v) { make('dt', k, facts); make('dd', v, facts); }
      table(one, 'What was last decided about it', [['time', 'what'], ...d.decisions.map(r => [span(r[0]), r[1]])], true);
    } catch (e) { one.textContent = 'It cannot be told: ' + e; }
  }
  search.addEventListener('input', show);
  const source = new EventSource('events');
  source.addEventListener('message', m => { $('failed').hidden = true; take(JSON.parse(m.data)); });
  source.addEventListener('ended', m => { $('failed').hidden = false; $('failed').textContent = 'The scheduler does not answer: ' + JSON.parse(m.data); });
  source.addEventListener('error', () => { $('failed').hidden = false; $('failed').textContent = 'The connection is lost; it is opened again.'; });
};
