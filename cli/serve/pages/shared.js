// What the list and the comparison share: rows of Studies (serve/feeds/study_list.h), and light and dark.
'use strict';

const rows = new Map();  // a Study's name to its row

function take_rows(loaded) {
  for (const row of loaded) {
    if (row.objective) row.objective.metric = plain_text(row.objective.metric);
    row.message = plain_text(row.message ?? '');
    rows.set(row.name, row);
  }
}

function watch_light(then) {
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    then();
  };
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  set(dark.matches ? 'dark' : 'light');
  dark.addEventListener('change', () => set(dark.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener('click', () =>
    set(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
}

function make(name, class_name, text) {
  const element = document.createElement(name);
  if (class_name) element.className = class_name;
  if (text !== undefined) element.textContent = text;
  return element;
}

// "loss ↓": a lower one is better.
function goal_text(objective) {
  return objective ? objective.metric + (objective.maximize ? ' ↑' : ' ↓') : '';
}

function used_text(row) {
  const parts = [];
  if (row.gpuHours > 0) parts.push(number_text(row.gpuHours) + ' h');
  if (typeof row.cost === 'number' && row.cost > 0) parts.push(number_text(row.cost) + ' ' + row.costUnit);
  return parts.join(', ') || '–';
}

function study_address(name) {
  return '/study/' + encodeURIComponent(name);
}
