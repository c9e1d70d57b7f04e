// The one selection of the page: words of the filter and ranges on the axes of parallel.js. Every
// chart shows the trials that are not selected faintly, the table leaves them out.
'use strict';

const chosen_ranges = new Map();  // axis name to [low, high], shares of its length from below
/** @type {Set<string> | null} */
let selected_names = null;        // null: no selection, so all

/** @param {TrialRow} trial */
function is_selected(trial) {
  return selected_names === null || selected_names.has(trial.name);
}

// "depth>=3" compares a parameter, a metric, or what else a column shows; any other word is looked
// for in the trial's row.
function word_test(word) {
  const found = /^(.+?)(<=|>=|<|>|=)(.+)$/.exec(word);
  const column = found && columns.find((each) => each.title.toLowerCase() === found[1]);
  if (!column) return (trial) => row_text(trial).includes(word);
  const [, , sign, text] = found;
  const wanted = Number(text);
  const holds = {'<': (a) => a < wanted, '>': (a) => a > wanted, '<=': (a) => a <= wanted, '>=': (a) => a >= wanted,
    '=': (a) => a === wanted}[sign];
  return (trial) => {
    const key = column.key(trial);
    if (typeof key === 'number') return holds(key);
    return sign === '=' && String(key ?? '').toLowerCase() === text;
  };
}

const row_texts = new Map();

/** @param {TrialRow} trial */
function row_text(trial) {
  let text = row_texts.get(trial.name);
  if (text === undefined) {
    text = columns.map((column) => column.text(trial)).join(' ').toLowerCase();
    row_texts.set(trial.name, text);
  }
  return text;
}

/** @type {(trial: TrialRow) => boolean} */
let selection_test = () => true;

function find_selected() {
  const words = document.getElementById('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && chosen_ranges.size === 0) {
    selected_names = null;
    return;
  }
  const tests = words.map(word_test);
  selection_test = (trial) => is_in_ranges(trial) && tests.every((test) => test(trial));
  selected_names = new Set(trials.filter(selection_test).map((trial) => trial.name));
}

// After these trials changed.
function select_again(changed) {
  for (const trial of changed) row_texts.delete(trial.name);
  if (selected_names === null) return;
  for (const trial of changed) {
    if (selection_test(trial)) selected_names.add(trial.name);
    else selected_names.delete(trial.name);
  }
  tell_selection();
}

function tell_selection() {
  document.getElementById('selection').hidden = selected_names === null;
  document.getElementById('selection-text').textContent = selected_names === null ? ''
    : selected_names.size + ' of ' + trials.length + ' trials selected';
}

// Everything that shows trials, after the selection changed.
function show_selection() {
  find_selected();
  tell_selection();
  mark_all('renew');
}

function clear_selection() {
  chosen_ranges.clear();
  document.getElementById('filter').value = '';
  show_selection();
}

function watch_selection() {
  document.getElementById('filter').addEventListener('input', show_selection);
  document.getElementById('clear').addEventListener('click', clear_selection);
}
