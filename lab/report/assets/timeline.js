// The device timeline: who held which device when. A row is a device, or several when there are more than pixels.
'use strict';
Q.timeline = (canvas, tip, data, horizon, choose) => {
  let nodes, count, at, on, low, high, lane, lanes, start, end, job, replicas, how, hows, names, milli, offset, rows, first, last, unhealthy;
  function take(data) {
    nodes = data.value('nodes'); count = nodes.length;
    at = data.column('seats.stay'); on = data.column('seats.node'); low = data.column('seats.low'); high = data.column('seats.high');
    lane = data.column('seats.lane'); lanes = data.column('seats.lanes'); // of those who share devices
    start = data.column('stays.start'); end = data.column('stays.end'); job = data.column('stays.job'); replicas = data.column('stays.replicas');
    how = data.column('stays.how'); hows = data.value('hows'); names = data.value('names'); milli = data.column('jobs.milli');
    offset = new Float64Array(count + 1);
    nodes.forEach((n, i) => { offset[i + 1] = offset[i] + Math.max(1, n[2]); });
    rows = offset[count];
    first = new Float64Array(at.length); last = new Float64Array(at.length);
    for (let i = 0; i < at.length; i++) { first[i] = start[at[i]]; last[i] = end[at[i]]; }
    unhealthy = []; // shaded: from each change to another state than ready to the next change of the node
    const open = new Map(), n = data.column('health.node'), t = data.column('health.at'), h = data.column('health.state'), states = data.value('states') || [];
    if (n) for (let i = 0; i < n.length; i++) {
      const o = open.get(n[i]);
      if (o) { unhealthy.push([n[i], o[0], t[i], o[1]]); open.delete(n[i]); }
      if (states[h[i]] !== 'ready') open.set(n[i], [t[i], states[h[i]]]);
    }
    for (const [node, o] of open) unhealthy.push([node, o[0], horizon, o[1]]);
  }
  take(data);
  let from = 0, to = Math.max(horizon, 1), top = 0, bottom = Math.max(rows, 1), chosen = -1, frame = 0;
  const left = 4, context = canvas.getContext('2d');
  const has = (i, bit) => bit < 32 ? (low[i] / 2 ** bit) & 1 : bit < 64 && high ? (high[i] / 2 ** (bit - 32)) & 1 : 0;

  function draw() {
    frame = 0;
    const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) { canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = Q.ink('paper'); context.fillRect(0, 0, w, h);
    const foot = 20, xs = (w - left) / (to - from), ys = (h - foot) / (bottom - top);
    context.fillStyle = Q.ink('shade');
    for (const [n, a, b] of unhealthy) context.fillRect(left + (a - from) * xs, (offset[n] - top) * ys, Math.max(1, (b - a) * xs), Math.max(1, (offset[n + 1] - offset[n]) * ys));
    const colours = []; for (let i = 0; i < 8; i++) colours.push(Q.colour(i));
    const gap = ys > 4 ? 1 : 0;
    for (let k = 0; k < 8; k++) { // by colour: changing it is slow
      context.fillStyle = colours[k]; context.beginPath();
      for (let i = 0; i < at.length; i++) {
        const j = job[at[i]];
        if (j % 8 !== k || last[i] < from || first[i] > to) continue;
        const o = offset[on[i]];
        if (offset[on[i] + 1] < top || o > bottom) continue;
        const x = left + (Math.max(first[i], from) - from) * xs, width = Math.max(.4, (Math.min(last[i], to) - Math.max(first[i], from)) * xs - (xs > .05 ? .5 : 0));
        let run = -1;
        for (let bit = 0; bit <= 64; bit++) {
          const set = has(i, bit);
          if (lanes && lanes[i] > 1) { // a part of each row
            if (set) { const part = (ys - gap) / lanes[i]; context.rect(x, (o + bit - top) * ys + lane[i] * part, width, Math.max(.4, part - (part > 4 ? 1 : 0))); }
            if (bit >= 31 && !high) break;
          } else if (set) { if (run < 0) run = bit; }
          else { if (run >= 0) { context.rect(x, (o + run - top) * ys, width, Math.max(.4, (bit - run) * ys - gap)); run = -1; } if (bit >= 32 && !high) break; }
        }
      }
      context.fill();
    }
    if (lanes && ys > 8) { // where a row begins
      context.fillStyle = Q.ink('line');
      for (let r = Math.ceil(Math.max(top, 0)); r < Math.min(bottom, rows); r++) context.fillRect(left, (r - top) * ys - 1, w, 1);
    }
    if (chosen >= 0) {
      context.strokeStyle = Q.ink('ink'); context.lineWidth = 2;
      for (let i = 0; i < at.length; i++) if (job[at[i]] === chosen && last[i] >= from && first[i] <= to) {
        const o = offset[on[i]];
        for (let bit = 0; bit < 64; bit++) if (has(i, bit)) { const parts = lanes ? lanes[i] : 1, part = (ys - gap) / parts; context.strokeRect(left + (first[i] - from) * xs, (o + bit - top) * ys + (lanes ? lane[i] * part : 0), Math.max(1, (last[i] - first[i]) * xs), Math.max(1, part)); }
      }
    }
    context.fillStyle = Q.ink('paper'); context.fillRect(0, h - foot, w, foot);
    context.fillStyle = Q.ink('soft'); context.font = '12px system-ui, sans-serif'; context.textBaseline = 'bottom';
    const ticks = Math.max(2, Math.floor(w / 110));
    for (let i = 0; i < ticks; i++) { const t = from + (to - from) * i / ticks, x = left + (t - from) * xs; context.fillText(Q.span(t), x, h - 3); context.fillRect(x, h - foot, 1, 4); }
  }
  const ask = () => { if (!frame) frame = requestAnimationFrame(draw); };
  const clamp = () => {
    const wide = Math.min(Math.max(to - from, horizon * 1e-6, 1e-3), Math.max(horizon, 1));
    from = Math.min(Math.max(from, 0), Math.max(horizon, 1) - wide); to = from + wide;
    const tall = Math.min(Math.max(bottom - top, 1), Math.max(rows, 1));
    top = Math.min(Math.max(top, 0), Math.max(rows, 1) - tall); bottom = top + tall;
    ask();
  };
  const zoom = (factor, x, y) => {
    const t = from + (to - from) * x, wide = (to - from) * factor;
    from = t - wide * x; to = from + wide;
    if (rows > 64) { const r = top + (bottom - top) * y, tall = (bottom - top) * factor; top = r - tall * y; bottom = top + tall; }
    clamp();
  };
  const place = e => { const b = canvas.getBoundingClientRect(); return [(e.clientX - b.left - left) / (b.width - left), (e.clientY - b.top) / (b.height - 20)]; };
  function found(x, y) {
    const t = from + (to - from) * x, r = top + (bottom - top) * y;
    let n = 0; while (n < count && offset[n + 1] <= r) n++;
    if (n >= count || r < 0) return null;
    const bit = Math.floor(r - offset[n]), within = r - offset[n] - bit, all = [];
    for (let i = 0; i < at.length; i++) if (on[i] === n && first[i] <= t && t < last[i] && has(i, bit)) all.push(i);
    const i = lanes ? all.find(i => Math.floor(within * lanes[i]) === lane[i]) : all[0];
    return { t, n, bit, i: i === undefined ? -1 : i, all };
  }
  function tell(f) {
    if (!f) { tip.textContent = ''; return; }
    const where = `${Q.span(f.t)}: ${nodes[f.n][0]} device ${f.bit}${nodes[f.n][1] ? ' (' + nodes[f.n][1] + ')' : ''}`;
    const ill = unhealthy.find(u => u[0] === f.n && u[1] <= f.t && f.t < u[2]);
    const beside = f.all.filter(i => i !== f.i).map(i => names[job[at[i]]]);
    if (f.i < 0) { tip.textContent = `${where}: ${ill ? ill[3] : beside.length ? 'beside ' + beside.join(', ') : 'free'}`; return; }
    const s = at[f.i];
    tip.textContent = `${where}: ${names[job[s]]}, ${replicas[s]} ${replicas[s] === 1 ? 'device' : 'devices'} from ${Q.span(start[s])} to ${Q.span(end[s])} (${hows[how[s]]})${milli && !Number.isNaN(milli[job[s]]) ? `, ${Math.round(milli[job[s]] / 10)} % of each` : ''}${beside.length ? ', beside ' + beside.join(', ') : ''}${Q.verdict ? Q.verdict(job[s], start[s]) : ''}`;
  }
  let grip = null;
  canvas.addEventListener('pointermove', e => {
    const [x, y] = place(e);
    if (grip) { const dx = (x - grip[0]) * (to - from), dy = (y - grip[1]) * (bottom - top); from -= dx; to -= dx; top -= dy; bottom -= dy; grip = [x, y, true]; clamp(); } else tell(found(x, y));
  });
  canvas.addEventListener('pointerdown', e => { grip = [...place(e), false]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointerup', e => { const f = grip && !grip[2] ? found(...place(e)) : null; grip = null; if (f && f.i >= 0) choose(job[at[f.i]]); });
  canvas.addEventListener('pointercancel', () => { grip = null; });
  canvas.addEventListener('pointerleave', () => { if (!grip) tip.textContent = ''; });
  canvas.addEventListener('wheel', e => { if (!e.ctrlKey && !e.shiftKey) return; e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : .8, ...place(e)); }, { passive: false });
  canvas.addEventListener('keydown', e => {
    const d = (to - from) / 10, r = (bottom - top) / 10;
    switch (e.key) {
      case 'ArrowLeft': from -= d; to -= d; break;
      case 'ArrowRight': from += d; to += d; break;
      case 'ArrowUp': top -= r; bottom -= r; break;
      case 'ArrowDown': top += r; bottom += r; break;
      case '+': case '=': zoom(.8, .5, .5); break;
      case '-': zoom(1.25, .5, .5); break;
      case 'Home': from = 0; to = horizon; top = 0; bottom = rows; break;
      default: return;
    }
    e.preventDefault(); clamp(); tell(found(.5, .5));
  });
  addEventListener('recolour', ask);
  new ResizeObserver(ask).observe(canvas);
  draw();
  return { zoom: f => zoom(f, .5, .5), whole() { from = 0; to = Math.max(horizon, 1); top = 0; bottom = rows; clamp(); }, choose(j) { chosen = j; ask(); },
    // renew takes the data of a later moment. What is shown stays, and the whole stays the whole.
    renew(data, until) {
      const whole = from === 0 && to >= horizon, tall = top === 0 && bottom >= rows;
      horizon = until; take(data);
      if (whole) to = Math.max(horizon, 1);
      if (tall) bottom = Math.max(rows, 1);
      clamp();
    } };
};
