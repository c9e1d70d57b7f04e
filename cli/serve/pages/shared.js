// What the list and the comparison share: rows of Studies (serve/feeds/study_list.h), and light and dark.
'use strict';

/** @typedef {{metric: string, maximize: boolean}} Goal */
/**
 * @typedef {object} StudyRow
 * @property {string} name
 * @property {string} [error]  why it cannot be read; then there is nothing but its name
 * @property {string} uid
 * @property {string} state
 * @property {string} message
 * @property {number | null} createdMs
 * @property {number | null} begunMs
 * @property {number | null} endedMs
 * @property {Goal} [objective]  the first one
 * @property {number} objectives
 * @property {{trial: string, value: number | null, parameters: Object<string, Value>} | null} best
 * @property {number} results
 * @property {[results: number, ms: number, value: number][]} steps  results that were the best so far
 * @property {Counts} trials
 * @property {number | null} budget
 * @property {number | null} gpuHours
 * @property {number | null} cost
 * @property {string | null} costUnit
 * @property {number | null} activeSeconds
 */

/** @type {Map<string, StudyRow>} */
const rows = new Map();  // a Study's name to its row

/** @param {StudyRow[]} loaded */
function take_rows(loaded) {
  for (const row of loaded) {
    if (row.objective) row.objective.metric = plain_text(row.objective.metric);
    row.message = plain_text(row.message ?? '');
    rows.set(row.name, row);
  }
}

/** @param {() => void} then */
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
/** @param {Goal | undefined} objective */
function goal_text(objective) {
  return objective ? objective.metric + (objective.maximize ? '\u00a0↑' : '\u00a0↓') : '';
}

/** @param {StudyRow} row */
function used_text(row) {
  const parts = [];
  if (row.gpuHours > 0) parts.push(number_text(row.gpuHours) + ' h');
  if (typeof row.cost === 'number' && row.cost > 0) parts.push(number_text(row.cost) + ' ' + row.costUnit);
  return parts.join(', ') || '–';
}

function study_address(name) {
  return '/study/' + encodeURIComponent(name);
}
