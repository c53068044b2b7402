// The page of several runs beside each other.
'use strict';
Q.several = data => {
  const { $, chart, span, digits, percent } = Q, runs = data.value('runs');
  const merged = (keys) => { // steps of several runs on the moments of all
    const xs = keys.map(k => data.column(k[0])), all = Float64Array.from(new Set(xs.flatMap(x => x ? Array.from(x) : []))).sort();
    const ys = keys.map((k, i) => { const x = xs[i], y = data.column(k[1]), out = new Float64Array(all.length).fill(NaN); if (!x) return out; let at = -1; for (let j = 0; j < all.length; j++) { while (at + 1 < x.length && x[at + 1] <= all[j]) at++; if (at >= 0 && (at + 1 < x.length || all[j] === x[at])) out[j] = y[at]; } return out; });
    return [all, ys];
  };
  for (const [key, title] of [['used', 'Devices held'], ['waiting', 'Waiting jobs']]) {
    const [x, ys] = merged(runs.map((_, i) => [`${i}.rounds.at`, `${i}.rounds.${key}`]));
    if (x.length) chart($('over'), { title, x, series: runs.map((label, i) => ({ label, y: ys[i], step: true })), sync: 'time' });
  }
  for (const d of data.value('cdfs')) {
    const points = runs.map((_, i) => data.column(`${i}.cdf.${d.key}`));
    if (!points.some(p => p)) continue;
    const all = Float64Array.from(new Set(points.flatMap(p => p ? Array.from(p) : []))).sort();
    const ys = points.map((p, r) => { const out = new Float64Array(all.length).fill(NaN); if (!p) return out; const low = d.low[r], high = d.high[r]; let at = -1; for (let j = 0; j < all.length; j++) { while (at + 1 < p.length && p[at + 1] <= all[j]) at++; out[j] = at < 0 ? 0 : p.length === 1 ? high : low + (high - low) * at / (p.length - 1); } return out; });
    chart($('cdfs'), { title: d.title, x: all, log: true, xFormat: d.seconds ? span : digits, xLabel: d.title, series: runs.map((label, i) => ({ label, y: ys[i], step: true })), format: percent, top: 1 });
  }
};
