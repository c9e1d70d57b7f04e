// The table of the selected trials, sorted by any column. Only rows near those in view are in the
// document (rows.js).
'use strict';

let sorted_by = {column: 0, down: false};

// title, what a cell says, what it is sorted by, and whether that is a number.
function make_columns() {
  const columns = [
    {title: 'trial', text: (t) => t.name, key: (t) => t.index, value: (t) => t.name},
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
/** @typedef {{title: string, text: (trial: TrialRow) => unknown, key: (trial: TrialRow) => unknown,
 *             value?: (trial: TrialRow) => unknown, number?: boolean}} Column */
/** @type {Column[]} */
let columns = [];

const kCollator = new Intl.Collator(undefined, {numeric: true});

// What is absent comes last, whichever way.
function compare(a, b, down) {
  const absent = (value) => value === null || value === undefined || value === '';
  if (absent(a) || absent(b)) return Number(absent(a)) - Number(absent(b));
  const order = typeof a === 'number' && typeof b === 'number'
    ? a - b : kCollator.compare(String(a), String(b));
  return down ? -order : order;
}

function visible_trials() {
  const {key} = columns[sorted_by.column];
  return trials.filter(is_selected).sort((a, b) => compare(key(a), key(b), sorted_by.down));
}

// Enter and the space bar do what a click does.
function on_press(element, action) {
  element.addEventListener('keydown', (event) => {
    if (event.target !== element || (event.key !== 'Enter' && event.key !== ' ')) return;
    event.preventDefault();
    action();
  });
}

// The columns follow from the Study; the one that sorts stays, found by its title.
function draw_head() {
  const sorting = columns[sorted_by.column]?.title;
  columns = make_columns();
  sorted_by.column = Math.max(columns.findIndex((column) => column.title === sorting), 0);
  const head = document.querySelector('#trials thead');
  const titles = [...head.querySelectorAll('th')].map((cell) => cell.title);
  if (JSON.stringify(titles) === JSON.stringify(columns.map((column) => column.title))) return;
  longest_texts = columns.map(() => '');
  clear_rows();
  head.textContent = '';
  const row = head.appendChild(document.createElement('tr'));
  columns.forEach((column, i) => {
    const cell = row.appendChild(document.createElement('th'));
    cell.textContent = column.title;
    cell.title = column.title;
    cell.scope = 'col';
    cell.tabIndex = 0;
    cell.classList.toggle('number', Boolean(column.number));
    const sort = () => {
      sorted_by = {column: i, down: sorted_by.column === i && !sorted_by.down};
      draw_table();
    };
    cell.addEventListener('click', sort);
    on_press(cell, sort);
  });
}

function draw_table() {
  document.querySelectorAll('#trials th').forEach((cell, i) => {
    const direction = sorted_by.down ? 'descending' : 'ascending';
    cell.setAttribute('aria-sort', i === sorted_by.column ? direction : 'none');
  });
  show_rows(visible_trials());
  document.getElementById('shown').textContent = rows_of.length === trials.length
    ? trials.length + (trials.length === 1 ? ' trial' : ' trials')
    : rows_of.length + ' of ' + trials.length + ' trials';
}
