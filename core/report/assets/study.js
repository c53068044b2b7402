// The page of a study.
'use strict';
Q.study = data => {
  const { $, chart, span, digits } = Q;
  for (const c of $('curves') ? data.value('charts') : []) {
    const x = data.column(c.x), series = [], bands = [];
    c.lines.forEach((l, i) => series.push({ label: l.label, y: data.column(l.key + '.mean'), colour: i, dash: i, points: true }));
    c.lines.forEach((l, i) => {
      const at = series.length + 1;
      series.push({ label: l.label + ', largest', y: data.column(l.key + '.high'), colour: i, hidden: true }, { label: l.label + ', smallest', y: data.column(l.key + '.low'), colour: i, hidden: true });
      bands.push({ series: [at, at + 1], colour: i });
    });
    chart($('curves'), { title: c.title, x, xFormat: digits, xLabel: 'load', format: c.seconds ? span : digits, series, bands });
  }
  for (const p of $('pairs') ? data.value('pairs') : []) {
    const order = p.x.map((_, i) => i).sort((a, b) => p.x[a] - p.x[b]), x = order.map(i => p.x[i]);
    const near = list => { const low = Math.min(...list), high = Math.max(...list), room = (high - low || low) * .1; return [low - room, high + room]; };
    chart($('pairs'), { title: p.title, x, xFormat: digits, xLabel: p.xName, xRange: near(p.x), yRange: near(p.y), series: p.names.map((label, i) => ({ label, only: true, points: true, y: order.map(k => k === i ? p.y[k] : NaN) })) });
  }
};
