// What every page needs: the data it carries, numbers as people read them, and charts with a table beside each.
'use strict';
const Q = (() => {
  const $ = id => document.getElementById(id);

  // unpack reads the columns that the page carries.
  async function unpack(text = $('data').textContent) {
    text = text.trim();
    let bytes;
    if (Uint8Array.fromBase64) bytes = Uint8Array.fromBase64(text);
    else bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const buffer = await new Response(stream).arrayBuffer();
    const length = new DataView(buffer).getUint32(0, true);
    const index = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const kept = new Map();
    const column = name => {
      if (kept.has(name)) return kept.get(name);
      const c = index.columns[name];
      if (!c) return null;
      let list;
      if (c.scale === 0) list = new Float32Array(buffer, 4 + length + c.at, c.n);
      else {
        const whole = new Uint32Array(buffer, 4 + length + c.at, c.n);
        list = new Float64Array(c.n);
        let sum = 0;
        for (let i = 0; i < c.n; i++) {
          if (c.delta) { sum += whole[i]; list[i] = sum * c.scale; }
          else list[i] = whole[i] === 0xffffffff ? NaN : whole[i] * c.scale;
        }
      }
      kept.set(name, list);
      return list;
    };
    return { column, value: name => index.values[name] };
  }

  const digits = v => Number.isNaN(v) || v == null ? '–' : Math.abs(v) >= 1000 ? Math.round(v).toLocaleString('en') : String(Number(v.toPrecision(4)));
  const short = v => Math.abs(v) >= 1e4 ? v.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 2 }) : digits(v); // beside an axis
  function span(s) {
    if (s == null || Number.isNaN(s)) return '–';
    const sign = s < 0 ? '-' : ''; s = Math.abs(s);
    if (s < 1) return sign + Number(s.toPrecision(2)) + ' s';
    if (s < 120) return sign + Number(s.toPrecision(3)) + ' s';
    if (s < 7200) return sign + Number((s / 60).toPrecision(3)) + ' min';
    if (s < 172800) return sign + Number((s / 3600).toPrecision(3)) + ' h';
    return sign + Number((s / 86400).toPrecision(4)) + ' d';
  }
  const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000];
  const percent = v => v == null || Number.isNaN(v) ? '–' : Number((100 * v).toPrecision(3)) + ' %';

  const style = () => getComputedStyle(document.documentElement);
  const colour = i => style().getPropertyValue('--c' + (i % 8)).trim();
  const ink = name => style().getPropertyValue('--' + name).trim();
  const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 2], [14, 5], [1, 2], [6, 2, 2, 2]];

  function make(tag, text, parent) {
    const e = document.createElement(tag);
    if (text != null) e.textContent = text;
    if (parent) parent.append(e);
    return e;
  }

  // table writes rows of texts; the first row is the header.
  function table(parent, caption, rows, words) {
    const box = make('div', null, parent); box.className = 'scroll tall'; box.tabIndex = 0;
    box.setAttribute('role', 'region'); box.setAttribute('aria-label', caption);
    const t = make('table', null, box); if (words) t.className = 'words';
    make('caption', caption, t);
    const head = make('tr', null, make('thead', null, t));
    for (const cell of rows[0]) make('th', cell, head).scope = 'col';
    const body = make('tbody', null, t);
    for (const row of rows.slice(1)) { const r = make('tr', null, body); for (const cell of row) make('td', cell, r); }
    return box;
  }

  // bars draws an upright line between two series at each place.
  function bars(u, list) {
    const c = u.ctx, dot = devicePixelRatio;
    c.save(); c.setLineDash([]); c.lineWidth = 1.5 * dot;
    for (const b of list) {
      c.strokeStyle = colour(b.colour);
      u.data[0].forEach((x, i) => {
        const [high, low] = b.series.map(k => u.data[k][i]);
        if (high == null || low == null) return;
        const at = u.valToPos(x, 'x', true), top = u.valToPos(high, 'y', true), foot = u.valToPos(low, 'y', true), cap = 4 * dot;
        c.beginPath(); c.moveTo(at, top); c.lineTo(at, foot);
        for (const y of [top, foot]) { c.moveTo(at - cap, y); c.lineTo(at + cap, y); }
        c.stroke();
      });
    }
    c.restore();
  }

  // from0 is the range of an axis that holds 0, with some room beyond what is drawn.
  function from0(low, high, top) {
    if (high == null) return [0, 1];
    low = Math.min(0, low); high = Math.max(0, high);
    const room = .05 * (high - low);
    return [low < 0 ? low - room : 0, top || (high > 0 ? high + room : low < 0 ? 0 : 1)];
  }

  let plots = [];
  const mostRows = 100;
  let observer = null;

  // chart draws series over x and offers the same as a table. o: {title, x, series: [{label, y, step, band, dash}], format, xFormat, log, top, xRange, yRange, sync, height}
  // With again, one of its title that is there already is given the new numbers.
  function chart(parent, o) {
    const labels = o.series.map(s => s.label).join('\n'), drawn = o.again && [...parent.children].find(f => f.chart && f.chart.title === o.title);
    if (drawn && drawn.chart.labels === labels) { drawn.chart.renew(o); return; }
    const figure = make('figure', null);
    if (drawn) drawn.replaceWith(figure); else parent.append(figure);
    plots = plots.filter(p => p.root.isConnected);
    make('figcaption', o.title, figure);
    const plot = make('div', null, figure); plot.className = 'plot';
    plot.setAttribute('role', 'img');
    plot.setAttribute('aria-label', o.title + ': ' + o.series.map(s => s.label).join(', ') + '. The table below holds the numbers.');
    const legend = make('ul', null, figure); legend.className = 'legend';
    const format = o.format || digits, xFormat = o.xFormat || span;
    const shown = o.series.map((s, i) => {
      const item = make('li', null, legend);
      if (s.hidden) { item.remove(); return null; }
      const line = make('i', null, item);
      line.style.borderColor = `var(--c${(s.colour ?? i) % 8})`;
      if (s.only) { line.style.color = `var(--c${(s.colour ?? i) % 8})`; line.className = s.hollow ? 'ring' : 'dot'; }
      else line.style.borderTopStyle = (s.dash ?? i) % 4 ? 'dashed' : 'solid';
      make('span', s.label, item);
      return make('b', '', item);
    });
    const stepped = uPlot.paths.stepped({ align: 1 }), linear = uPlot.paths.linear(), dots = uPlot.paths.points();
    const axis = () => ({ stroke: () => ink('soft'), grid: { stroke: () => ink('line'), width: 1 }, ticks: { stroke: () => ink('line'), width: 1 }, font: '12px system-ui, sans-serif' });
    const options = {
      width: Math.max(240, figure.clientWidth || 600), height: o.height || 230, legend: { show: false },
      cursor: { sync: o.sync ? { key: o.sync } : undefined, drag: { x: true, y: false } },
      scales: { x: { time: false, distr: o.log ? 3 : 1, range: o.xRange ? () => o.xRange : undefined }, y: { range: o.yRange ? () => o.yRange : (u, low, high) => from0(low, high, o.top) } },
      axes: [
        { ...axis(), ...(o.xSplits && (figure.clientWidth || 600) / o.xSplits.length < 100 ? { rotate: 30, size: 76 } : {}), splits: o.xSplits ? () => o.xSplits : undefined, incrs: o.xFormat ? undefined : steps, values: (u, list) => list.map(v => v == null ? '' : xFormat(v)), filter: o.log ? (u, list) => list.map(v => v > 0 && Number.isInteger(Math.round(1e6 * Math.log10(v)) / 1e6) ? v : null) : undefined },
        { ...axis(), size: 72, incrs: format === span ? [.001, .01, .1, ...steps] : undefined, values: (u, list) => list.map(v => v == null ? '' : (o.format || short)(v)) },
      ],
      series: [{}, ...o.series.map((s, i) => ({
        label: s.label, stroke: () => s.hidden ? 'transparent' : colour(s.colour ?? i), width: s.only ? 0 : 1.6, dash: dashes[(s.dash ?? i) % 8], spanGaps: true,
        points: { show: s.points || s.only || false, size: s.hollow ? 13 : 7, fill: () => s.hollow ? 'transparent' : colour(s.colour ?? i), width: s.hollow ? 2 : 1 }, paths: s.only ? dots : s.step ? stepped : linear,
      }))],
      bands: (o.bands || []).filter(b => !b.bars).map(b => ({ series: b.series, fill: () => colour(b.colour) + '30' })),
      hooks: { draw: [u => bars(u, (o.bands || []).filter(b => b.bars))], setCursor: [u => { const i = u.cursor.idx; o.series.forEach((s, k) => { if (shown[k]) shown[k].textContent = i == null || u.data[k + 1][i] == null ? '' : ' ' + format(u.data[k + 1][i]) + (k === 0 ? ' at ' + xFormat(u.data[0][i]) : ''); }); }] },
    };
    const known = y => y.some ? Array.from(y, v => Number.isNaN(v) ? null : v) : y;
    const u = new uPlot(options, [o.x, ...o.series.map(s => known(s.y))], plot);
    plots.push(u);
    if (!observer) observer = new ResizeObserver(entries => { for (const e of entries) { const p = e.target.plot, w = Math.max(240, Math.floor(e.contentRect.width)); if (p && p.width !== w) p.setSize({ width: w, height: p.height }); } });
    plot.plot = u; observer.observe(plot);
    const details = make('details', null, figure);
    make('summary', 'Table', details);
    details.addEventListener('toggle', () => { if (details.childElementCount < 2) rows(); });
    function rows() {
      const n = o.x.length, every = Math.max(1, Math.ceil(n / mostRows)), list = [[o.xLabel || 'time', ...o.series.map(s => s.label)]];
      for (let i = 0; i < n; i += every) list.push([xFormat(o.x[i]), ...o.series.map(s => format(s.y[i]))]);
      table(details, o.title + (every > 1 ? `, every ${every}th of ${n} rows` : ''), list);
    }
    figure.chart = { title: o.title, labels, renew(next) {
      const { min, max } = u.scales.x, whole = !(min > o.x[0] || max < o.x[o.x.length - 1]); // what was chosen of it stays
      o.x = next.x; next.series.forEach((s, i) => { o.series[i].y = s.y; });
      u.setData([o.x, ...o.series.map(s => known(s.y))], whole); if (!whole) u.redraw();
      if (details.childElementCount > 1 && !details.contains(document.activeElement)) { details.lastChild.remove(); if (details.open) rows(); }
    } };
  }

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { for (const p of plots) p.redraw(); dispatchEvent(new Event('recolour')); });

  // ready says, on the page and to measurements, that everything can be used.
  const ready = () => { document.documentElement.dataset.ready = String(Math.round(performance.now())); };
  const failed = e => { const n = $('failed'); if (n) { n.hidden = false; n.textContent = 'The charts cannot be drawn: ' + e; } document.documentElement.dataset.ready = 'failed'; };
  return { $, unpack, digits, span, percent, colour, ink, make, table, chart, ready, failed };
})();
