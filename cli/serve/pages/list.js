// The list of Studies.
'use strict';

/** @type {Set<string>} */
const chosen = new Set();        // names of Studies to compare
/** @type {Map<string, HTMLTableRowElement>} */
const row_elements = new Map();  // a Study's name to its row of the table
const kOrder = ['running', 'waiting', 'interrupted', 'suspended'];  // states that come first

function age_text(since_ms) {
  const seconds = Math.max(0, Math.round((Date.now() - since_ms) / 1000));
  /** @type {[size: number, unit: string][]} */
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min']];
  for (const [size, unit] of units) {
    if (seconds >= size) return Math.floor(seconds / size) + ' ' + unit + ' ago';
  }
  return 'just now';
}

// The best so far along results, with a point at the newest one.
/** @param {StudyRow} row */
function sparkline(row) {
  const steps = row.steps ?? [];
  if (steps.length === 0) return make('span', 'quiet', 'no result yet');
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('class', 'spark');
  svg.setAttribute('viewBox', '0 0 150 36');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label',
    'Best so far: from ' + number_text(steps[0][2]) + ' to ' + number_text(steps.at(-1)[2]));
  const [low, high] = extent(steps.map((step) => step[2]));
  const x = (results) => 2 + 144 * ((results - 1) / Math.max(row.results - 1, 1));
  const y = (value) => 32 - 28 * (high > low ? (value - low) / (high - low) : 0.5);
  const points = [];
  steps.forEach(([results, , value], i) => {
    if (i > 0) points.push([x(results), y(steps[i - 1][2])]);
    points.push([x(results), y(value)]);
  });
  points.push([x(row.results), y(steps.at(-1)[2])]);
  const text = (list) => list.map((point) => point.map((at) => at.toFixed(1)).join(',')).join(' ');
  const add = (name, attributes) => {
    const part = svg.appendChild(document.createElementNS(space, name));
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  };
  add('polygon', {points: text([[points[0][0], 36], ...points, [points.at(-1)[0], 36]])});
  add('polyline', {points: text(points)});
  add('circle', {cx: points.at(-1)[0].toFixed(1), cy: points.at(-1)[1].toFixed(1), r: '2.6'});
  return svg;
}

/** @param {StudyRow} row */
function progress(row) {
  const counts = row.trials;
  const bar = make('div', 'bar');
  const whole = Math.max(row.budget ?? 0, counts.created, 1);
  /** @type {[count: number, color: string][]} */
  const parts = [[counts.completed, 'accent'], [counts.stopped, 'stopped'], [counts.failed, 'bad'],
    [counts.running, 'good']];
  for (const [count, color] of parts) {
    const part = bar.appendChild(make('div'));
    part.style.width = (100 * count) / whole + '%';
    part.style.background = 'var(--' + color + ')';
  }
  return bar;
}

function add_cell(line, class_name, label, ...content) {
  const cell = line.appendChild(make('td', class_name));
  if (label) cell.dataset.label = label;
  cell.append(...content);
  return cell;
}

/**
 * @param {HTMLElement} line
 * @param {StudyRow} row
 */
function fill_about(line, row) {
  const cell = add_cell(line, 'about', '');
  const link = cell.appendChild(make('a', 'name', row.name));
  link.href = study_address(row.name);
  if (row.error) {
    cell.colSpan = 8;
    cell.appendChild(make('p', 'quiet error', row.error));
  } else if (row.message) {
    cell.appendChild(make('p', 'quiet message', row.message));
  }
}

/** @param {StudyRow} row */
function choice_box(row) {
  const box = make('input');
  box.type = 'checkbox';
  box.checked = chosen.has(row.name);
  box.setAttribute('aria-label', 'Compare ' + row.name);
  box.addEventListener('change', () => {
    if (box.checked) chosen.add(row.name);
    else chosen.delete(row.name);
    show_choice();
  });
  return box;
}

/** @param {StudyRow} row */
function fill_row(line, row) {
  line.textContent = '';
  add_cell(line, 'choice', '', choice_box(row));
  fill_about(line, row);
  if (row.error) return;
  add_cell(line, '', 'state', make('span', 'pill ' + row.state, row.state));
  const best = add_cell(line, 'number', 'best');
  best.appendChild(make('div', 'value', row.best ? number_text(row.best.value) : '–'));
  best.appendChild(make('div', 'quiet', short_text(goal_text(row.objective), 28)));
  add_cell(line, '', 'best so far', sparkline(row));
  const trials_cell = add_cell(line, '', 'trials');
  const counts = row.trials;
  trials_cell.append(counts.created + (row.budget === null ? '' : ' of ' + row.budget));
  if (counts.failed > 0) trials_cell.appendChild(make('span', 'quiet', ' · ' + counts.failed + ' failed'));
  trials_cell.appendChild(progress(row));
  add_cell(line, 'number', 'running', String(counts.running));
  add_cell(line, 'number', 'GPU-hours, cost', used_text(row));
  const begun = add_cell(line, 'number begun', 'begun', row.begunMs ? age_text(row.begunMs) : '–');
  begun.title = row.begunMs ? new Date(row.begunMs).toLocaleString() : '';
}

/** @param {StudyRow} row */
function rank_of(row) {
  const at = kOrder.indexOf(row.state);
  return at < 0 ? kOrder.length : at;
}

function sorted_rows() {
  return [...rows.values()].sort((a, b) => rank_of(a) - rank_of(b) ||
    (b.begunMs ?? b.createdMs ?? 0) - (a.begunMs ?? a.createdMs ?? 0) || a.name.localeCompare(b.name));
}

function show_choice() {
  const button = document.getElementById('compare');
  button.disabled = chosen.size < 2;
  button.textContent = chosen.size < 2 ? 'Compare: choose two' : 'Compare ' + chosen.size;
}

function draw_summary() {
  const all = [...rows.values()].filter((row) => !row.error);
  const sum = (of) => all.reduce((total, row) => total + (of(row) ?? 0), 0);
  const facts = [['Studies', all.length, all.filter((row) => row.state === 'running').length + ' running'],
    ['Trials', sum((row) => row.trials.created), sum((row) => row.trials.running) + ' running now'],
    ['Time', duration_text(1000 * sum((row) => row.activeSeconds)), 'in which trials ran']];
  const hours = sum((row) => row.gpuHours);
  if (hours > 0) facts.push(['GPU-hours', number_text(hours), 'in all studies']);
  const cards = document.getElementById('cards');
  cards.textContent = '';
  cards.hidden = all.length === 0;
  for (const [label, value, note] of facts) {
    const card = cards.appendChild(make('div', 'card'));
    card.append(make('div', 'label', label), make('div', 'value', String(value)), make('div', 'label', note));
  }
}

/** @param {Set<string>} changed  names of Studies */
function draw_list(changed) {
  document.getElementById('start').hidden = rows.size > 0;
  document.getElementById('list').hidden = rows.size === 0;
  const words = document.getElementById('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const body = document.querySelector('table.studies tbody');
  let shown = 0;
  let at = 0;  // rows that move would lose the focus
  for (const row of sorted_rows()) {
    let line = row_elements.get(row.name);
    if (!line || changed.has(row.name)) {
      if (!line) row_elements.set(row.name, line = make('tr'));
      fill_row(line, row);
    }
    const text = (row.name + ' ' + (row.state ?? '')).toLowerCase();
    line.hidden = !words.every((word) => text.includes(word));
    if (!line.hidden) ++shown;
    if (body.children[at] !== line) body.insertBefore(line, body.children[at] ?? null);
    ++at;
  }
  document.getElementById('shown').textContent = shown === rows.size ? '' : shown + ' of ' + rows.size;
  draw_summary();
  show_choice();
}

/** @param {{place: string, studies: StudyRow[]}} loaded */
function show_list(loaded) {
  document.getElementById('place').textContent = loaded.place;
  for (const name of rows.keys()) {
    if (loaded.studies.some((row) => row.name === name)) continue;
    row_elements.get(name)?.remove();
    row_elements.delete(name);
    chosen.delete(name);
  }
  rows.clear();
  show_changes(loaded);
}

/** @param {{studies: StudyRow[]}} changes */
function show_changes({studies}) {
  take_rows(studies);
  draw_list(new Set(studies.map((row) => row.name)));
}

function watch_list() {
  document.getElementById('filter').addEventListener('input', () => draw_list(new Set()));
  document.getElementById('compare').addEventListener('click', () => {
    location.href = '/compare?' + [...chosen].map((name) => 'study=' + encodeURIComponent(name)).join('&');
  });
  setInterval(() => {
    for (const [name, line] of row_elements) {
      const begun = line.querySelector('.begun');
      if (begun && rows.get(name)?.begunMs) begun.textContent = age_text(rows.get(name).begunMs);
    }
  }, 15000);
}

watch_light(() => {});
watch_list();
open_stream('/events', {document: show_list, change: show_changes});
