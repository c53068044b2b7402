// Figures that the page carries: lines with their own x, put on the places of all.
'use strict';
Q.figures = (data, more) => {
  const { $, chart, span, digits, percent } = Q, write = { plain: digits, seconds: span, share: percent };
  for (const f of data.value('figures') || []) {
    const parent = $(f.place), lines = f.lines || [];
    if (!parent) continue;
    const xs = lines.map(l => data.column(l.key + '.x')), ends = f.ticks ? [-.5, f.ticks.length - .5] : [];
    const x = Float64Array.from(new Set([...ends, ...xs.flatMap(list => Array.from(list))])).sort();
    const placed = (i, name) => {
      const own = xs[i], y = data.column(lines[i].key + name), out = new Float64Array(x.length).fill(NaN);
      let at = -1;
      for (let j = 0; j < x.length; j++) {
        while (at + 1 < own.length && own[at + 1] <= x[j]) at++;
        if (at >= 0 && (own[at] === x[j] || lines[i].step && at + 1 < own.length)) out[j] = y[at];
      }
      return out;
    };
    const lone = y => y.reduce((n, v) => n + !Number.isNaN(v), 0) < 2; // a step needs two
    const series = lines.map((l, i) => ({ label: l.label, y: placed(i, '.y'), colour: l.colour, dash: l.hollow || l.points ? 0 : l.colour, step: l.step, points: !l.step || lone(data.column(l.key + '.y')), only: l.points, hollow: l.hollow })), bands = [];
    lines.forEach((l, i) => {
      if (!l.band) return;
      const at = series.length + 1, bars = l.points;
      series.push({ label: l.label + ', upper end', y: placed(i, '.high'), colour: l.colour, hidden: true }, { label: l.label + ', lower end', y: placed(i, '.low'), colour: l.colour, hidden: true });
      bands.push({ series: [at, at + 1], colour: l.colour, bars });
    });
    const label = v => { const k = Math.round(v); return Math.abs(v - k) < .45 && f.ticks[k] != null ? f.ticks[k] : ''; };
    chart(parent, {
      ...more,
      title: f.title, x, xLabel: f.xLabel, log: f.log, xFormat: f.ticks ? label : f.x === 'seconds' && !f.log ? null : write[f.x], xSplits: f.ticks ? f.ticks.map((_, i) => i) : null,
      xRange: f.ticks ? ends : null, format: f.y === 'plain' ? null : write[f.y], series, bands, top: f.y === 'share' && f.place === 'shapes' ? 1 : null, sync: f.x === 'seconds' && !f.log ? 'time' : null,
    });
  }
};
