// The page of a study.
'use strict';
Q.study = data => {
  const { $, chart, span, digits } = Q;
  Q.figures(data);
  for (const p of $('pairs') ? data.value('pairs') : []) {
    const order = p.x.map((_, i) => i).sort((a, b) => p.x[a] - p.x[b]), x = order.map(i => p.x[i]);
    const near = list => { const low = Math.min(...list), high = Math.max(...list), room = (high - low || Math.abs(low) || 1) * .1; return [low - room, high + room]; };
    chart($('pairs'), { title: p.title, x, xFormat: digits, xLabel: p.xName, xRange: near(p.x), yRange: near(p.y), series: p.names.map((label, i) => ({ label, only: true, points: true, y: order.map(k => k === i ? p.y[k] : NaN) })) });
  }
};
