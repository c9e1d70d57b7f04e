// The table of trials: sorted by any column, filtered by words and by the ranges chosen in
// parallel.js; and the panel about one trial.
'use strict';

const kRowsAtOnce = 200;
let sorted_by = {column: 0, down: false};
let rows_shown = kRowsAtOnce;
let selected = null;  // name of a trial

// title, what a cell says, what it is sorted by, and whether that is a number.
function make_columns() {
  const columns = [
    {title: 'trial', text: (t) => t.name, key: (t) => t.index},
    {title: 'phase', text: kind_of, key: kind_of},
    {title: study.unit, text: (t) => t.step, key: (t) => t.step, number: true},
  ];
  study.objectives.forEach((each, i) => columns.push({title: each.metric, number: true,
    text: (t) => number_text(t.values[i]), key: (t) => t.values[i]}));
  columns.push({title: 'time', text: (t) => duration_text(1000 * t.seconds), key: (t) => t.seconds,
    number: true});
  if (study.costUnit) {
    columns.push({title: study.costUnit, number: true, text: (t) => number_text(t.cost), key: (t) => t.cost});
  }
  for (const {name, values} of study.parameters) {
    columns.push({title: name, number: !values, text: (t) => value_text(own(t.parameters, name)),
      key: (t) => own(t.parameters, name)});
  }
  if (trials.some((t) => t.repeats)) {
    columns.push({title: 'repeats', text: (t) => t.repeats ?? '', key: (t) => t.repeats ?? ''});
  }
  columns.push({title: 'why it ended', text: (t) => short_ending(t.ending ?? ''), key: (t) => t.ending ?? ''});
  return columns;
}
const columns = make_columns();

// What is absent comes last, whichever way.
function compare(a, b, down) {
  const absent = (value) => value === null || value === undefined || value === '';
  if (absent(a) || absent(b)) return Number(absent(a)) - Number(absent(b));
  const order = typeof a === 'number' && typeof b === 'number'
    ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
  return down ? -order : order;
}

function visible_trials() {
  const words = document.getElementById('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (trial) => {
    const text = columns.map((column) => column.text(trial)).join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = trials.filter((trial) => is_chosen(trial) && (words.length === 0 || matches(trial)));
  const {key} = columns[sorted_by.column];
  return found.sort((a, b) => compare(key(a), key(b), sorted_by.down));
}

function draw_head() {
  const row = document.querySelector('#trials thead').appendChild(document.createElement('tr'));
  columns.forEach((column, i) => {
    const cell = row.appendChild(document.createElement('th'));
    cell.textContent = column.title;
    cell.scope = 'col';
    cell.tabIndex = 0;
    cell.classList.toggle('number', Boolean(column.number));
    const sort = () => {
      sorted_by = {column: i, down: sorted_by.column === i && !sorted_by.down};
      draw_table();
    };
    cell.addEventListener('click', sort);
    cell.addEventListener('keydown', (event) => event.key === 'Enter' && sort());
  });
}

function draw_row(body, trial) {
  const row = body.appendChild(document.createElement('tr'));
  row.classList.toggle('best', front.has(trial.name));
  row.classList.toggle('selected', trial.name === selected);
  for (const column of columns) {
    const cell = row.appendChild(document.createElement('td'));
    const text = String(column.text(trial));
    cell.textContent = text;
    if (column.number) cell.className = 'number';
    if (text.length > 30) cell.title = text;
  }
  row.children[1].className = 'phase ' + kind_of(trial);
  row.addEventListener('click', () => select_trial(trial.name));
}

function draw_table() {
  document.querySelectorAll('#trials th').forEach((cell, i) => {
    const direction = sorted_by.down ? 'descending' : 'ascending';
    cell.setAttribute('aria-sort', i === sorted_by.column ? direction : 'none');
  });
  const found = visible_trials();
  const body = document.querySelector('#trials tbody');
  body.textContent = '';
  for (const trial of found.slice(0, rows_shown)) draw_row(body, trial);
  document.getElementById('shown').textContent = found.length === trials.length
    ? trials.length + (trials.length === 1 ? ' trial' : ' trials')
    : found.length + ' of ' + trials.length + ' trials';
  const more = document.getElementById('more');
  more.hidden = found.length <= rows_shown;
  more.textContent = 'Show all ' + found.length;
}

function watch_table() {
  draw_head();
  document.getElementById('filter').addEventListener('input', draw_table);
  document.getElementById('more').addEventListener('click', () => {
    rows_shown = Infinity;
    draw_table();
  });
}

// What a trial's newest report may say of its GPU: by which name, and how it is read.
const kDeviceFacts = [
  ['mfu', 'MFU', percent_text],
  ['gpu_utilization', 'GPU busy', percent_text],
  ['gpu_memory_bytes', 'GPU memory', (bytes) => (bytes / 2 ** 30).toFixed(1) + ' GiB'],
  ['gpu_power_watts', 'GPU power', (watts) => Math.round(watts) + ' W'],
  ['gpu_energy_joules', 'GPU energy', (joules) => number_text(joules / 3.6e6) + ' kWh'],
];

// Term and description; nothing where there is nothing to say.
function add_fact(list, term, text) {
  if (text === '' || text === null || text === undefined) return;
  list.appendChild(document.createElement('dt')).textContent = term;
  list.appendChild(document.createElement('dd')).textContent = text;
}

// Shows the text of `fettle why` and the end of the log; where the page lacks them, the commands.
function add_notes(panel, trial) {
  const note = own(data.notes, trial.name) ?? {};
  const add_text = (title, text) => {
    panel.appendChild(document.createElement('h3')).textContent = title;
    const block = panel.appendChild(document.createElement('pre'));
    block.tabIndex = 0;
    block.textContent = text;
  };
  add_text('Why', (note.why ?? 'fettle why ' + trial.name).trim());
  const where = note.where ? ' · ' + note.where : '';
  add_text('End of the log' + where, note.log || note.missing || 'fettle logs ' + trial.name);
}

// The address names the trial that is shown, so that a link to it can be sent.
function trial_of_address() {
  const found = /^#trial=(.+)$/.exec(location.hash);
  if (!found) return null;
  try {
    return names.get(decodeURIComponent(found[1])) ?? null;
  } catch {
    return null;  // no URI
  }
}

function set_address(name) {
  const hash = name ? '#trial=' + encodeURIComponent(name) : location.pathname + location.search;
  if (location.protocol !== 'about:') history.replaceState(null, '', hash);
}

function select_trial(name) {
  selected = name;
  set_address(name);
  const trial = names.get(name);
  const panel = document.getElementById('detail');
  panel.hidden = false;
  panel.textContent = '';
  const close = panel.appendChild(document.createElement('button'));
  close.className = 'close';
  close.textContent = '✕';
  close.setAttribute('aria-label', 'Close');
  close.addEventListener('click', () => {
    panel.hidden = true;
    selected = null;
    set_address(null);
    draw_table();
  });
  panel.appendChild(document.createElement('h2')).textContent = trial.name;
  const list = panel.appendChild(document.createElement('dl'));
  add_fact(list, 'phase', kind_of(trial) + ', ' + study.unit + ' ' + trial.step);
  study.objectives.forEach((each, i) => add_fact(list, each.metric, number_text(trial.values[i])));
  add_fact(list, 'chosen', 'knowing ' + trial.basis + (trial.basis === 1 ? ' fact' : ' facts'));
  if (trial.expected) add_fact(list, 'then', expected_text(trial));
  add_fact(list, trial.stopReason ?? 'ended', trial.ending);
  add_fact(list, 'time', duration_text(1000 * trial.seconds));
  if (trial.cost !== undefined) add_fact(list, 'cost', number_text(trial.cost) + ' ' + study.costUnit);
  for (const [name, term, text] of kDeviceFacts) {
    const value = trial.device[name];
    if (typeof value === 'number') add_fact(list, term, text(value));
  }
  for (const [parameter, value] of Object.entries(trial.parameters)) {
    add_fact(list, parameter, value_text(value));
  }
  add_notes(panel, trial);
  draw_table();
}
