// Several Studies compared: best so far in one chart, and the best trials side by side.
'use strict';

const kMostCompared = 8;  // as many colours there are
const compared = [...new Set(new URLSearchParams(location.search).getAll('study'))].slice(0, kMostCompared);

function series_color(i) {
  return getComputedStyle(document.documentElement).getPropertyValue('--series-' + (i + 1)).trim();
}

// Neighbours differ in more than colour.
function series_dash(i) {
  return i % 2 === 1 ? [7, 4] : [];
}

function remember_choice() {
  const query = compared.map((name) => 'study=' + encodeURIComponent(name)).join('&');
  history.replaceState(null, '', '/compare' + (query ? '?' + query : ''));
  document.title = compared.join(', ') + ' · Fettle';
}

function shown_rows() {
  return compared.map((name) => rows.get(name)).filter((row) => row && !row.error);
}

/**
 * @param {Goal} a
 * @param {Goal} b
 */
function is_same_goal(a, b) {
  return a.metric === b.metric && a.maximize === b.maximize;
}

function draw_chips() {
  const chips = document.getElementById('chips');
  chips.textContent = '';
  compared.forEach((name, i) => {
    const chip = chips.appendChild(make('span', 'chip'));
    const swatch = chip.appendChild(make('span', 'swatch' + (series_dash(i).length > 0 ? ' dashed' : '')));
    swatch.style.borderColor = series_color(i);
    chip.appendChild(make('a', '', name)).href = study_address(name);
    const drop = chip.appendChild(make('button', '', '✕'));
    drop.type = 'button';
    drop.setAttribute('aria-label', 'Leave out ' + name);
    drop.addEventListener('click', () => {
      compared.splice(compared.indexOf(name), 1);
      draw_comparison();
    });
  });
  const others = [...rows.keys()].filter((name) => !compared.includes(name)).sort();
  if (others.length === 0 || compared.length >= kMostCompared) return;
  const add = chips.appendChild(make('select'));
  add.setAttribute('aria-label', 'Add a study');
  add.appendChild(make('option', '', '+ add a study')).value = '';
  for (const name of others) add.appendChild(make('option', '', name)).value = name;
  add.addEventListener('change', () => {
    compared.push(add.value);
    draw_comparison();
  });
}

/**
 * @param {StudyRow} row
 * @param {string} along  results or time
 * @param {{size: number}} unit  of time
 */
function points_of(row, along, unit) {
  /** @param {StudyRow['steps'][0]} step */
  const at = ([results, ms]) => (along === 'results' ? results : ms / unit.size);
  const points = row.steps.map((step) => ({x: at(step), y: step[2], row}));
  const end = along === 'results' ? row.results : ((row.endedMs ?? Date.now()) - row.begunMs) / unit.size;
  if (points.length > 0 && end > points.at(-1).x) points.push({x: end, y: points.at(-1).y, row});
  return points;
}

function draw_progress() {
  const section = document.getElementById('progress');
  const along = document.getElementById('along').value;
  const all = shown_rows().filter((row) => row.steps.length > 0 && row.objective);
  const first = all[0]?.objective;
  const shown = all.filter((row) => is_same_goal(row.objective, first));
  const left_out = all.filter((row) => !is_same_goal(row.objective, first)).map((row) => row.name);
  document.getElementById('left-out').textContent = left_out.length === 0 ? ''
    : 'Not drawn, since the objective is another one: ' + left_out.join(', ') + '.';
  const lasting = shown.map((row) => (row.endedMs ?? Date.now()) - row.begunMs);
  const unit = time_unit_of(lasting.length > 0 ? Math.max(...lasting) : 0);
  const lines = shown.map((row) => points_of(row, along, unit));
  const axis = axis_of(lines.flat().map((point) => point.y), Boolean(first?.maximize));
  const datasets = shown.map((row, n) => {
    const i = compared.indexOf(row.name);
    return {
      type: 'line', label: row.name, stepped: 'before', clip: 6, borderWidth: 2.5, borderDash: series_dash(i),
      data: lines[n].map((point) => ({...point, y: axis.clamp(point.y)})),
      pointRadius: lines[n].length === 1 ? 5 : 2, pointHitRadius: 8,
      ink: {borderColor: () => series_color(i), pointBackgroundColor: () => series_color(i)},
    };
  });
  const last = Math.max(0, ...lines.flat().map((point) => point.x));
  const x = {type: 'linear', min: along === 'results' ? 1 : 0, max: along === 'results' ? Math.max(last, 2) : last || 1};
  const scales = {
    x: scale_of(x, along === 'results' ? 'results' : unit.name + ' since the start'),
    y: scale_of(axis, first ? goal_text(first) : ''),
  };
  const options = {
    scales,
    interaction: {mode: 'nearest', intersect: false, axis: 'x'},
    plugins: {
      legend: {display: false},
      tooltip: {
        displayColors: false,
        callbacks: {title: () => '', label: (item) => item.dataset.label + ': ' + number_text(item.raw.y)},
      },
    },
  };
  draw(section, shown.length > 0 && {data: {datasets}, options}, 'No result yet.');
}

function time_unit_of(last_ms) {
  if (last_ms > 7200000) return {size: 3600000, name: 'hours'};
  return last_ms > 120000 ? {size: 60000, name: 'minutes'} : {size: 1000, name: 'seconds'};
}

/**
 * @param {HTMLElement} body
 * @param {string} title
 * @param {(row: StudyRow) => string} of  what it says of a Study
 * @param {(row: StudyRow) => string} mark  the class of its cell
 */
function add_line(body, title, of, mark = (_row) => '') {
  const line = body.appendChild(make('tr'));
  line.appendChild(make('td', '', title));
  const shown = shown_rows();
  for (const row of shown) line.appendChild(make('td', mark(row), of(row)));
  return line;
}

// The Study that leads, of those with the objective of the first.
/** @param {StudyRow[]} shown */
function leader_of(shown) {
  const [first] = shown;
  let best = null;
  for (const row of shown) {
    if (!row.best || row.best.value === null || !first.objective || !is_same_goal(row.objective, first.objective)) continue;
    const better = best && (first.objective.maximize ? row.best.value > best.best.value : row.best.value < best.best.value);
    if (!best || better) best = row;
  }
  return best;
}

/** @param {StudyRow[]} shown */
function draw_parameters_of(body, shown) {
  const parameters = new Set(shown.flatMap((row) => Object.keys(row.best?.parameters ?? {})));
  for (const name of parameters) {
    const value = (row) => own(row.best?.parameters, name);
    const differs = new Set(shown.map((row) => JSON.stringify(value(row)))).size > 1;
    const line = add_line(body, name, (row) => value_text(value(row)));
    line.classList.toggle('differs', differs && shown.length > 1);
  }
}

function draw_values() {
  const shown = shown_rows();
  document.getElementById('values').hidden = shown.length === 0;
  const head = document.querySelector('table.compare thead');
  const body = document.querySelector('table.compare tbody');
  head.textContent = '';
  body.textContent = '';
  if (shown.length === 0) return;
  const names_line = head.appendChild(make('tr'));
  names_line.appendChild(make('th', '', ''));
  for (const row of shown) names_line.appendChild(make('th', '', row.name));
  const leader = leader_of(shown);
  add_line(body, 'state', (row) => row.state);
  add_line(body, 'best', (row) => (row.best ? number_text(row.best.value) + ' ' + goal_text(row.objective) : '–'),
    (row) => (row === leader ? 'leads' : ''));
  add_line(body, 'trial', (row) => row.best?.trial ?? '–');
  add_line(body, 'results', (row) => String(row.results));
  add_line(body, 'found as', (row) => (row.steps.length > 0 ? 'result ' + row.steps.at(-1)[0] + ', after ' +
    duration_text(row.steps.at(-1)[1]) : '–'));
  add_line(body, 'trials', (row) => row.trials.created + (row.budget === null ? '' : ' of ' + row.budget));
  add_line(body, 'failed', (row) => String(row.trials.failed));
  add_line(body, 'time with trials', (row) => duration_text(1000 * (row.activeSeconds ?? 0)));
  add_line(body, 'GPU-hours, cost', used_text);
  draw_parameters_of(body, shown);
}

function say_what_is_shown() {
  const missing = compared.filter((name) => !rows.has(name));
  const unreadable = compared.filter((name) => rows.get(name)?.error);
  const texts = [];
  if (missing.length > 0) texts.push('Not there: ' + missing.join(', ') + '.');
  if (unreadable.length > 0) texts.push('Cannot be read now: ' + unreadable.join(', ') + '.');
  if (texts.length === 0 && compared.length < 2) texts.push('Add studies to compare.');
  document.getElementById('message').textContent = texts.join(' ');
}

function draw_comparison() {
  remember_choice();
  say_what_is_shown();
  draw_chips();
  draw_progress();
  draw_values();
}

/** @param {{studies: StudyRow[]}} changes */
function show_rows({studies}) {
  const before = rows.size;
  take_rows(studies);
  const touched = rows.size !== before || studies.some((row) => compared.includes(row.name));
  if (touched) draw_comparison();
}

/** @param {{place: string, studies: StudyRow[]}} loaded */
function show_all(loaded) {
  rows.clear();
  take_rows(loaded.studies);
  draw_comparison();
}

watch_light(() => {
  read_colors();
  renew_charts();
});
document.getElementById('along').addEventListener('change', draw_progress);
open_stream('/events', {document: show_all, change: show_rows});
