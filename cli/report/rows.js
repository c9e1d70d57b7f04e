// The rows of the table that are in the document: those in view and some around them, between two
// rows that have the height of the others. One row can be reached by Tab, the others by arrow keys.
'use strict';

const kRowsAround = 30;      // above and below the rows in view
const kRowsPrinted = 1000;
/** @type {TrialRow[]} */
let rows_of = [];            // trials of all rows, in their order
let row_height = 29;         // px; measured
/** @type {string | null} */
let tab_row = null;          // name of the trial whose row Tab reaches
let longest_texts = [];      // of each column, of rows that were shown: columns never get narrower
let printing = false;
/** @type {Map<string, HTMLTableRowElement>} */
const row_elements = new Map();  // a trial's name to its row

function scroller() {
  return document.querySelector('#trials .scroll');
}

function make_space(place) {
  const row = document.createElement('tr');
  row.className = 'space';
  row.setAttribute('aria-hidden', 'true');
  row.appendChild(document.createElement('td')).colSpan = columns.length;
  place.appendChild(row);
  return row;
}

// Without rows: above, the widths of columns, below.
function clear_rows() {
  const body = document.querySelector('#trials tbody');
  body.textContent = '';
  row_elements.clear();
  make_space(body);
  const widths = body.appendChild(document.createElement('tr'));
  widths.className = 'widths';
  for (const {number} of columns) widths.appendChild(document.createElement('td')).className = number ? 'number' : '';
  make_space(body);
}

/** @param {TrialRow} trial */
function make_row(trial) {
  const row = document.createElement('tr');
  row.dataset.trial = trial.name;
  for (const column of columns) {
    const cell = row.appendChild(document.createElement('td'));
    if (column.number) cell.className = 'number';
  }
  return row;
}

// Writes what changed.
/** @param {TrialRow} trial */
function fill_row(row, trial, at) {
  row.classList.toggle('best', front.has(trial.name));
  row.classList.toggle('selected', trial.name === selected);
  row.setAttribute('aria-rowindex', String(at + 2));
  columns.forEach((column, i) => {
    const text = String(column.text(trial));
    const cell = row.cells[i];
    if (cell.textContent === text) return;
    cell.textContent = text;
    cell.title = text.length > 30 ? text : '';
    if (text.length > longest_texts[i].length) longest_texts[i] = text;
  });
  row.cells[1].className = 'phase ' + kind_of(trial);
}

// First and last row that the document holds; in steps, so that scrolling seldom changes them.
function row_window() {
  if (printing) return [0, Math.min(rows_of.length, kRowsPrinted)];
  const box = scroller();
  const first = Math.floor(box.scrollTop / row_height / 10) * 10 - kRowsAround;
  const seen = Math.ceil((box.clientHeight || 720) / row_height / 10) * 10;
  return [Math.min(Math.max(first, 0), rows_of.length), Math.min(first + seen + 10 + 2 * kRowsAround, rows_of.length)];
}

function place_rows(body, first, wanted) {
  const [above, widths, below] = [body.firstElementChild, body.querySelector('.widths'), body.lastElementChild];
  const kept_names = new Set(wanted.map((trial) => trial.name));
  for (const [name, row] of row_elements) {
    if (kept_names.has(name)) continue;
    row.remove();
    row_elements.delete(name);
  }
  let next = widths.nextElementSibling;
  wanted.forEach((trial, i) => {
    const row = row_elements.get(trial.name) ?? make_row(trial);
    row_elements.set(trial.name, row);
    fill_row(row, trial, first + i);
    if (row === next) next = row.nextElementSibling;
    else body.insertBefore(row, next);
  });
  above.style.height = first * row_height + 'px';
  below.style.height = (rows_of.length - first - wanted.length) * row_height + 'px';
  longest_texts.forEach((text, i) => {
    if (widths.cells[i].textContent !== text) widths.cells[i].textContent = text;
  });
}

function draw_rows() {
  const body = document.querySelector('#trials tbody');
  if (!body.firstElementChild) clear_rows();
  const focused = document.activeElement;
  const [first, last] = row_window();
  const wanted = rows_of.slice(first, last);
  place_rows(body, first, wanted);
  document.querySelector('#trials table').setAttribute('aria-rowcount', String(rows_of.length + 1));
  const reached = wanted.some((trial) => trial.name === tab_row) ? tab_row : wanted[0]?.name;
  for (const [name, row] of row_elements) row.tabIndex = name === reached ? 0 : -1;
  if (focused?.closest('#trials tbody') === null || focused === document.activeElement) return;
  if (focused?.isConnected) focused.focus({preventScroll: true});
  else if (focused?.dataset.trial) scroller().focus({preventScroll: true});
}

// Shows these trials. The first row in view stays where it is, if it is still there.
function show_rows(shown) {
  const box = scroller();
  const at = Math.floor(box.scrollTop / row_height);
  const top = at > 0 ? rows_of[at] : undefined;
  rows_of = shown;
  draw_rows();
  const row = document.querySelector('#trials tr[data-trial]');
  const height = row?.getBoundingClientRect().height ?? row_height;
  const moved = top ? rows_of.indexOf(top) - at : -1;
  if (top && rows_of.includes(top) && moved !== 0) box.scrollTop += moved * row_height;
  if (Math.abs(height - row_height) > 0.1 && height > 0) row_height = height;
  else if (moved <= 0) return;
  draw_rows();
}

// Brings a row into view and focuses it.
function focus_row(at) {
  const trial = rows_of[Math.min(Math.max(at, 0), rows_of.length - 1)];
  if (!trial) return;
  const box = scroller();
  const head = document.querySelector('#trials thead').offsetHeight;
  const top = rows_of.indexOf(trial) * row_height;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + row_height + head > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + row_height + head - box.clientHeight;
  }
  tab_row = trial.name;
  draw_rows();
  row_elements.get(trial.name)?.focus({preventScroll: true});
}

function row_key(event) {
  const row = event.target.closest('tr[data-trial]');
  if (!row || event.target !== row || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = rows_of.indexOf(names.get(row.dataset.trial));
  const places = {ArrowUp: at - 1, ArrowDown: at + 1, PageUp: at - 20, PageDown: at + 20, Home: 0, End: rows_of.length - 1};
  if (event.key === 'Enter' || event.key === ' ') select_trial(row.dataset.trial);
  else if (Object.hasOwn(places, event.key)) focus_row(places[event.key]);
  else return;
  event.preventDefault();
}

// Marks the row of the trial in the panel.
function mark_row() {
  for (const [name, row] of row_elements) row.classList.toggle('selected', name === selected);
}

function watch_rows() {
  const body = document.querySelector('#trials tbody');
  body.addEventListener('keydown', row_key);
  body.addEventListener('click', (event) => {
    const row = event.target.closest('tr[data-trial]');
    if (row) select_trial(row.dataset.trial);
  });
  body.addEventListener('focusin', (event) => {
    const row = event.target.closest('tr[data-trial]');
    if (row) tab_row = row.dataset.trial;
  });
  scroller().addEventListener('scroll', draw_rows, {passive: true});
  window.addEventListener('beforeprint', () => {
    printing = true;
    draw_now();
    draw_rows();
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    draw_rows();
  });
}
