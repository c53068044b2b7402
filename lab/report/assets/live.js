// What the page of a run has besides while the run goes on: what is now, and the page itself as it becomes.
'use strict';
Q.live = (first, show) => {
  const { $, span, digits, make, table } = Q, filled = '.tools, canvas, .tip, .found, #one, .grid', mostRows = 200;
  let last = null, number = first.value('live'), noForecast = first.value('noForecast'), asking = false, hasForecast = false; // hasForecast: the list of jobs has a column for what is expected
  const held = e => { const at = document.activeElement; return at && at !== document.body && e.contains(at); }; // what is in use is left alone

  // put replaces a part by a newer one, unless it is the same.
  function put(old, part) {
    for (const d of part.matches('details') ? [part] : part.querySelectorAll('details')) d.open = old.matches('details') ? old.open : d.open;
    if (old.isEqualNode(part) || held(old)) return;
    const top = old.scrollTop, left = old.scrollLeft;
    old.replaceWith(part); part.scrollTop = top; part.scrollLeft = left;
  }
  // merge makes a section that of a newer page; what scripts have filled stays.
  function merge(old, part) {
    let at = old.firstElementChild;
    for (const c of [...part.children]) {
      const mine = c.matches(filled) ? (c.id ? old.querySelector('#' + c.id) : old.querySelector(':scope > .' + c.className)) : null;
      if (mine) {
        while (at && at !== mine && !at.matches(filled)) { const next = at.nextElementSibling; at.remove(); at = next; }
        if (at === mine) at = at.nextElementSibling;
      } else if (at && !at.matches(filled) && at.nodeName === c.nodeName && at.className === c.className) {
        const next = at.nextElementSibling; put(at, c); at = next;
      } else old.insertBefore(c, at);
    }
    while (at) { const next = at.nextElementSibling; if (!at.matches(filled)) at.remove(); at = next; }
  }
  // renew fetches the page as it is now, and takes over what differs.
  async function renew() {
    asking = true;
    try {
      const answer = await fetch(location.pathname);
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html'), data = await Q.unpack(next.getElementById('data').textContent);
      if (data.value('live') == null) { location.reload(); return; } // it has ended
      number = data.value('live'); noForecast = data.value('noForecast');
      const nav = document.querySelector('nav'); put(nav, next.querySelector('nav'));
      const main = $('main'), notes = m => m.querySelector(':scope > .notes:not(#failed)'), said = notes(main), says = notes(next.getElementById('main'));
      if (said && says) put(said, says); else if (said) said.remove(); else if (says) $('failed').after(says);
      const name = s => s.getAttribute('aria-labelledby'), old = new Map([...main.querySelectorAll(':scope > section')].map(s => [name(s), s]));
      let before = null;
      for (const s of [...next.querySelectorAll('main > section')]) {
        const mine = old.get(name(s));
        if (mine) { merge(mine, s); before = mine; old.delete(name(s)); } else { if (before) before.after(s); else main.append(s); before = s; }
      }
      for (const s of old.values()) if (!held(s)) s.remove();
      show(data);
    } catch (e) { /* asked again at the next event */ } finally { asking = false; }
  }

  function now() {
    const count = {}; for (const j of last.jobs) count[j[1]] = (count[j[1]] || 0) + 1;
    const box = $('state'); box.replaceChildren();
    const cards = make('dl', null, box); cards.className = 'cards';
    for (const [k, v] of [['time of the run', span(last.now)], ['devices held', `${last.used} of ${last.devices}`], ...Object.entries(count).map(([k, v]) => [k, digits(v)])]) { const d = make('div', null, cards); make('dt', k, d); make('dd', v, d); }
    if (!held($('nodetable'))) { $('nodetable').replaceChildren(); table($('nodetable'), 'Nodes', [['node', 'type', 'held', 'devices', 'health'], ...last.nodes.map(n => n.map(String))]); }
    if (held($('jobtable'))) touch(); else list();
  }
  const cells = j => [j[1], ...(hasForecast ? [j[5]] : []), j[2], digits(j[3]), j[4] == null ? '–' : span(j[4])];
  const write = (e, text) => { if (e.textContent !== text) e.textContent = text; };
  function foresight() { // how to take what is expected, or why nothing is
    const text = last.foresight ? (hasForecast ? last.foresight : '') : (last.jobs.length && noForecast) || '';
    write($('foresight'), text); $('foresight').hidden = !text;
  }
  // touch renews the texts of a list of jobs that is in use, and leaves its rows.
  function touch() {
    const jobs = new Map(last.jobs.map(j => [j[0], j]));
    for (const r of $('jobtable').querySelectorAll('tbody tr')) {
      const j = jobs.get(r.firstChild.textContent), texts = j ? cells(j) : ['has ended'];
      [...r.children].slice(1).forEach((c, i) => write(c, texts[i] || ''));
    }
    foresight();
  }
  function list() {
    if (!last) return;
    const filter = $('filter'), text = filter.value.trim().toLowerCase(), shown = last.jobs.filter(j => j[0].toLowerCase().includes(text));
    $('jobtable').replaceChildren();
    hasForecast = Boolean(last.foresight);
    const box = make('div', null, $('jobtable'));
    make('p', '', box).id = 'foresight'; foresight();
    const t = table(box, shown.length > mostRows ? `The first ${mostRows} of ${digits(shown.length)} jobs that have not ended` : 'Jobs that have not ended', [['job', 'state', ...(hasForecast ? ['expected'] : []), 'why', 'devices', 'submitted'], ...shown.slice(0, mostRows).map(j => [j[0], ...cells(j)])], true);
    t.querySelectorAll('tbody tr').forEach((r, i) => { const cell = r.firstChild, b = make('button', shown[i][0]); b.type = 'button'; cell.replaceChildren(b); b.addEventListener('click', () => { Q.select(shown[i][0]); $('one').scrollIntoView({ block: 'nearest' }); }); });
  }
  // explain asks what was last decided about a job.
  Q.explain = async name => {
    const one = $('one'), box = make('div', null, one);
    let d;
    try { d = await (await fetch('job?name=' + encodeURIComponent(name))).json(); } catch (e) { d = { error: 'The job cannot be shown: ' + e }; }
    if (!box.isConnected) return; // another one was chosen
    one.style.minHeight = '';
    make('h4', 'What the scheduler knows of it now', box);
    if (d.error) { make('p', d.error, box); return; }
    const facts = make('dl', null, box); facts.className = 'facts';
    for (const [k, v] of d.facts) if (v) { make('dt', k, facts); make('dd', v, facts); }
    table(box, 'What was last decided about it', [['time', 'what'], ...d.decisions.map(r => [span(r[0]), r[1]])], true);
  };
  $('filter').addEventListener('input', list);
  const failed = text => { $('failed').hidden = !text; $('failed').textContent = text || ''; };
  const source = new EventSource('events');
  source.addEventListener('message', m => { failed(''); last = JSON.parse(m.data); now(); if (last.page > number && !asking && !document.hidden) renew(); });
  source.addEventListener('silent', m => failed('The run has not ended, and its scheduler does not answer: ' + JSON.parse(m.data) + '. It is asked again; below is what was known.'));
  source.addEventListener('over', () => { source.close(); location.reload(); });
  source.addEventListener('error', () => failed(source.readyState === EventSource.CLOSED ? 'The connection is lost; open the address that quartet ui printed.' : 'The connection is lost; it is opened again.'));
};
