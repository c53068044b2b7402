// A list whose rows can be searched.
'use strict';
Q.list = () => {
  const filter = Q.$('filter');
  if (!filter) return;
  const rows = document.querySelectorAll('tbody tr');
  filter.addEventListener('input', () => { const text = filter.value.trim().toLowerCase(); for (const r of rows) r.hidden = !r.textContent.toLowerCase().includes(text); });
};
