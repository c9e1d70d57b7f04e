// Puts the page together: what stands at its top, which objective is shown, light and dark.
'use strict';

function make_card(label, value, note, more = '') {
  const card = document.createElement('div');
  card.className = 'card';
  card.dataset.card = label;
  card.dataset.says = JSON.stringify([value, note]);
  const add = (name, text) => {
    const line = card.appendChild(document.createElement('div'));
    line.className = name;
    line.textContent = text;
    return line;
  };
  add('label', label);
  add('value ' + more, value);
  if (note) add('label', note);
  return card;
}

// A trial's parameters, ready to paste. JSON's values are YAML's, too.
const kPasteForms = {
  YAML: (trial) => Object.entries(trial.parameters).map(([name, value]) =>
    (/^[A-Za-z_][\w.-]*$/.test(name) ? name : JSON.stringify(name)) + ': ' + JSON.stringify(value) + '\n').join(''),
  JSON: (trial) => JSON.stringify(trial.parameters, null, 2) + '\n',
  env: (trial) => Object.entries(trial.parameters).map(([name, value]) => 'export ' +
    study.parameters.find((each) => each.name === name).env + '=\'' +
    String(value).replaceAll('\'', '\'\\\'\'') + '\'\n').join(''),
};

function copy_text(text) {
  const area = document.body.appendChild(document.createElement('textarea'));
  area.value = text;
  area.select();
  const done = document.execCommand('copy');  // the clipboard's newer interface is not there in files
  area.remove();
  return done;
}

function add_best_parameters(card, best) {
  card.classList.add('wide-card');
  const list = card.appendChild(document.createElement('dl'));
  for (const [name, value] of Object.entries(best.parameters)) add_fact(list, name, value_text(value));
  const row = card.appendChild(document.createElement('div'));
  row.className = 'copies';
  row.append('copy as ');
  for (const [form, write] of Object.entries(kPasteForms)) {
    const button = row.appendChild(document.createElement('button'));
    button.type = 'button';
    button.textContent = form;
    button.setAttribute('aria-label', 'Copy the best parameters as ' + form);
    button.addEventListener('click', () => {
      button.textContent = copy_text(write(best)) ? '✓ ' + form : form + ': not allowed';
    });
  }
}

function add_progress(card) {
  const counts = study.counts;
  const bar = card.appendChild(document.createElement('div'));
  bar.className = 'bar';
  const whole = Math.max(study.budget ?? 0, counts.created, 1);
  /** @type {[count: number, color: string][]} */
  const parts = [[counts.completed, 'accent'], [counts.stopped, 'stopped'], [counts.failed, 'bad'],
    [counts.running, 'good']];
  for (const [count, color] of parts) {
    const part = bar.appendChild(document.createElement('div'));
    part.style.width = (100 * count) / whole + '%';
    part.style.background = 'var(--' + color + ')';
  }
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + '.';
}

// A card that says something else; the others stay as the reader left them.
function show_cards(cards) {
  const place = document.getElementById('cards');
  const old = new Map([...place.children].map((card) => [card.dataset.card, card]));
  cards.forEach((card, i) => {
    const before = old.get(card.dataset.card);
    const same = before?.dataset.says === card.dataset.says;
    const controls = before ? [...before.querySelectorAll('button, summary')] : [];
    const focused = controls.indexOf(document.activeElement);
    if (!same && before?.querySelector('details')?.open) card.querySelector('details')?.setAttribute('open', '');
    const shown = same ? before : card;
    if (place.children[i] !== shown) place.insertBefore(shown, place.children[i] ?? null);
    if (before && !same) before.remove();
    if (!same && focused >= 0) card.querySelectorAll('button, summary')[focused]?.focus({preventScroll: true});
  });
  while (place.children.length > cards.length) place.lastElementChild.remove();
}

function best_card() {
  const best = best_of(objective);
  const shown = study.objectives[objective];
  const card = make_card('Best ' + shown.metric + (shown.maximize ? ' (maximised)' : ' (minimised)'),
    best ? number_text(best.values[objective]) : '–', best ? best.name : 'no result yet', 'best');
  if (best) add_best_parameters(card, best);
  return card;
}

function trials_card() {
  const counts = study.counts;
  /** @type {[count: number, what: string][]} */
  const notes = [[counts.completed, 'completed'], [counts.stopped, 'stopped early'],
    [counts.failed, 'failed'], [counts.infeasible, 'infeasible'], [counts.running, 'to end']];
  const planned = study.budget === null ? '' : ' of ' + study.budget;
  const card = make_card('Trials', counts.created + planned,
    notes.filter(([count]) => count > 0).map(([count, what]) => count + ' ' + what).join(', '));
  add_progress(card);
  return card;
}

function search_card() {
  const algorithm = (study.algorithm || '–').split(/[ (,]/)[0].replace(/:$/, '');
  const stopping = study.earlyStopping ? ', stopped early by ' + study.earlyStopping : '';
  const whole = (study.algorithm || '') + stopping;
  const card = make_card('Search', algorithm, '');
  if (whole === algorithm || whole === '') return card;
  card.dataset.says += whole;
  const more = card.appendChild(document.createElement('details'));
  more.className = 'label';
  more.appendChild(document.createElement('summary')).textContent = 'in full';
  more.append(whole);
  return card;
}

function draw_cards() {
  const cards = [best_card()];
  if (study.objectives.length > 1) {
    cards.push(make_card('Pareto front', String(study.front.length), 'trials that no other one beats'));
  }
  cards.push(trials_card());
  const span = study.state === 'running' ? 'since the start' : 'from start to end';
  cards.push(make_card('Time', duration_text(1000 * (study.tookSeconds ?? 0)), span + '; trials ran in ' +
    duration_text(1000 * (study.activeSeconds ?? 0)) + ' of it, ' + study.parallelism + ' at once'));
  if (study.gpuHours > 0) cards.push(make_card('GPU hours', number_text(study.gpuHours), ''));
  cards.push(search_card());
  show_cards(cards);
}

function draw_head_line() {
  const name = document.getElementById('name');
  name.textContent = study.name;
  const pill = name.appendChild(document.createElement('span'));
  pill.className = 'pill ' + study.state;
  pill.textContent = study.state;
  document.getElementById('message').textContent = study.message;
  document.getElementById('footer').textContent =
    (study.begun ? 'Begun ' + study.begun + ' · ' : '') + 'as of ' + study.written +
    ' · written by fettle ' + (live_notes ? 'serve' : 'report') + ', drawn with Chart.js ' + Chart.version;
}

// Fills a list with [value, text]; a choice that was made stays.
function fill_select(id, options, first) {
  const select = document.getElementById(id);
  const shown = [...select.options].map((option) => [option.value, option.text]);
  if (JSON.stringify(shown) === JSON.stringify(options)) return;  // it may be open
  const chosen = select.value || first;
  select.textContent = '';
  for (const [value, text] of options) {
    const option = select.appendChild(document.createElement('option'));
    option.value = value;
    option.textContent = text;
  }
  select.value = options.some(([value]) => value === chosen) ? chosen : first;
}

function draw_legend() {
  const legend = document.getElementById('legend');
  const signs = {circle: '●', crossRot: '×', rectRot: '◆', rect: '■'};
  legend.textContent = '';
  for (const mark of kMarks.filter((each) => trials.some((trial) => mark_of(trial) === each))) {
    const sign = legend.appendChild(document.createElement('span'));
    sign.textContent = signs[mark.shape];
    sign.style.color = 'var(--' + mark.color + ')';
    legend.append(' ' + mark.text + '   ');
  }
}

// What each part of the page shows, and how it is drawn.
function add_views() {
  const at = (id) => document.getElementById(id);
  const valued = (trial) => has_value(trial, objective);
  const final = (trial) => kind_of(trial) === 'Completed';
  const several = () => study.objectives.length > 1;
  const any = () => true;
  add_view(at('cards'), {draw: draw_cards, parts: ['study'], is_of: final});
  add_view(at('legend'), {draw: draw_legend, is_of: any});
  chart_view(at('best-so-far'), {draw: draw_best_so_far, is_of: final});
  chart_view(at('curves'), {draw: draw_curves, renew: renew_curves, is_of: any, is_there: are_there_curves});
  chart_view(at('front'), {draw: draw_front, parts: ['front'], is_of: final, is_there: several});
  chart_view(at('volume'), {draw: draw_volume, parts: ['volumes'], is_there: several});
  chart_view(at('importance'), {draw: draw_importance, parts: ['insights']});
  // What was expected is of the first objective.
  chart_view(at('expectation'), {draw: draw_expectation, is_of: final, is_there: () => objective === 0});
  add_view(at('parameters'), {draw: draw_parameters, parts: ['insights'], is_of: (t) => valued(t) && is_drawn(t)});
  chart_view(at('together'), {draw: draw_together, parts: ['insights'], is_of: valued,
    is_there: () => Boolean(data.insights[objective].surface)});
  add_view(at('parallel'), {draw: draw_parallel, renew: draw_parallel, parts: ['insights'], is_of: valued});
  chart_view(at('timeline'), {draw: draw_timeline, is_of: any});
  add_view(at('failures'), {draw: draw_failures, is_of: is_failed, is_there: () => trials.some(is_failed)});
  add_view(at('trials'), {draw: draw_table, renew: draw_table, parts: ['front'], is_of: any});
}

// Charts stay, their colours change.
function set_theme(name) {
  document.documentElement.dataset.theme = name;
  read_colors();
  mark_all('renew');
}

function fill_choices() {
  const objectives = study.objectives.map((each, i) => [String(i), each.metric]);
  document.getElementById('objective-label').hidden = objectives.length < 2;
  fill_select('objective', objectives, '0');
  fill_select('front-x', objectives, '0');
  fill_select('front-y', objectives, String(Math.min(1, objectives.length - 1)));
  const ways = [['results', 'results'], ['time', 'time']];
  if (study.gpuHours > 0) ways.push(['gpu', 'GPU-hours']);
  fill_select('along', ways, 'results');
  const some_lack = trials.some((trial) => kind_of(trial) !== 'Completed' && trial.values.some((v) => v !== null));
  document.getElementById('stopped-label').hidden = !some_lack || study.counts.completed === 0;
}

function choose_objective(chosen) {
  objective = chosen;
  axis_order = null;
  chosen_ranges.clear();
  show_selection();
  mark_all('draw');
}

function watch_choices() {
  const on_change = (id, action) => document.getElementById(id).addEventListener('change', action);
  on_change('objective', (event) => choose_objective(Number(event.target.value)));
  for (const id of ['front-x', 'front-y']) on_change(id, () => draw_soon(document.getElementById('front')));
  on_change('along', () => draw_soon(document.getElementById('best-so-far')));
  on_change('with-stopped', redraw_parameters);
}

function watch_theme() {
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  set_theme(dark.matches ? 'dark' : 'light');
  dark.addEventListener('change', () => set_theme(dark.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener('click', () =>
    set_theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
}

// Once, when there is something to use.
function watch_page() {
  watch_choices();
  watch_parallel();
  watch_selection();
  watch_rows();
  watch_downloads();
  window.addEventListener('resize', () => draw_soon(document.getElementById('parallel')));
}

// Shows a document. A later one takes the place of the first; what the reader chose stays.
/** @param {StudyDocument} loaded */
function load_document(loaded) {
  const first = data === null;
  take_document(loaded);
  if (objective >= study.objectives.length) objective = 0;
  fill_choices();
  draw_head();
  draw_head_line();
  if (first) {
    watch_page();
    add_views();
    watch_detail();
  }
  row_texts.clear();
  show_selection();
  mark_all('draw');
  refresh_detail();
}

// Shows what changed: {study?, trials?, volumes?, insights?}. Rows of trials are whole, found by
// their names; new ones come last.
/** @param {Changes} changes */
function apply_changes(changes) {
  const old_front = [...front].join('\n');
  const merged = merge_changes(changes);
  const parts = new Set(['study', 'volumes', 'insights'].filter((part) => changes[part]));
  if ([...front].join('\n') !== old_front) parts.add('front');
  fill_choices();
  if (changes.study) draw_head_line();
  select_again(merged.map(({trial}) => trial));
  mark_changes(parts, merged);
  if (merged.some(({trial}) => trial.name === selected)) refresh_detail();
}

// A page without data waits for load_document().
function start() {
  watch_theme();
  const text = document.getElementById('data').textContent.trim();
  if (text !== '') load_document(JSON.parse(text));
}

start();
