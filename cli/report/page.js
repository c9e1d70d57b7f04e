// Puts the page together: what stands at its top, which objective is shown, light and dark.
'use strict';

function add_card(label, value, note, more = '') {
  const card = document.getElementById('cards').appendChild(document.createElement('div'));
  card.className = 'card';
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

function draw_cards() {
  document.getElementById('cards').textContent = '';
  const best = best_of(objective);
  const shown = study.objectives[objective];
  const card = add_card('Best ' + shown.metric + (shown.maximize ? ' (maximised)' : ' (minimised)'),
    best ? number_text(best.values[objective]) : '–', best ? best.name : 'no result yet', 'best');
  if (best) add_best_parameters(card, best);
  if (study.objectives.length > 1) {
    add_card('Pareto front', String(study.front.length), 'trials that no other one beats');
  }
  const counts = study.counts;
  const notes = [[counts.completed, 'completed'], [counts.stopped, 'stopped early'],
    [counts.failed, 'failed'], [counts.infeasible, 'infeasible'], [counts.running, 'to end']];
  const planned = study.budget === null ? '' : ' of ' + study.budget;
  add_progress(add_card('Trials', counts.created + planned,
    notes.filter(([count]) => count > 0).map(([count, what]) => count + ' ' + what).join(', ')));
  add_card('Time', duration_text(1000 * (study.tookSeconds ?? 0)), 'from start to end; trials ran in ' +
    duration_text(1000 * (study.activeSeconds ?? 0)) + ' of it, ' + study.parallelism + ' at once');
  if (study.gpuHours > 0) add_card('GPU hours', number_text(study.gpuHours), '');
  const algorithm = (study.algorithm || '–').split(/[ (,]/)[0].replace(/:$/, '');
  const stopping = study.earlyStopping ? ', stopped early by ' + study.earlyStopping : '';
  const whole = (study.algorithm || '') + stopping;
  const search = add_card('Search', algorithm, '');
  if (whole === algorithm || whole === '') return;
  const more = search.appendChild(document.createElement('details'));
  more.className = 'label';
  more.appendChild(document.createElement('summary')).textContent = 'in full';
  more.append(whole);
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
    ' · written by fettle report, drawn with Chart.js ' + Chart.version;
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

// A last card without a neighbour takes the whole row.
function fill_rows() {
  const shown = [...document.querySelectorAll('.grid > section')].filter((section) => !section.hidden);
  shown.forEach((section, i) =>
    section.classList.toggle('whole', i === shown.length - 1 && shown.length % 2 === 1));
}

function draw_all() {
  draw_cards();
  draw_legend();
  draw_best_so_far();
  draw_curves();
  draw_front();
  draw_volume();
  draw_importance();
  draw_expectation();
  fill_rows();
  draw_parameters();
  draw_together();
  draw_axis_buttons();
  draw_parallel();
  draw_timeline();
  draw_failures();
  draw_table();
}

// Charts stay, their colours change.
function set_theme(name) {
  document.documentElement.dataset.theme = name;
  read_colors();
  if (drawn.size > 0) renew_charts();
  if (parallel_axes.length > 0) draw_parallel();
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
  draw_all();
  show_selection();
}

function watch_choices() {
  const on_change = (id, action) => document.getElementById(id).addEventListener('change', action);
  on_change('objective', (event) => choose_objective(Number(event.target.value)));
  on_change('front-x', draw_front);
  on_change('front-y', draw_front);
  on_change('along', draw_best_so_far);
  on_change('with-stopped', draw_parameters);
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
  watch_table();
  watch_downloads();
  window.addEventListener('resize', draw_parallel);
}

// Shows a document. A later one takes the place of the first; what the reader chose stays.
function load_document(loaded) {
  const first = data === null;
  take_document(loaded);
  if (first) watch_page();
  if (objective >= study.objectives.length) objective = 0;
  fill_choices();
  draw_head();
  row_texts.clear();
  find_selected();
  draw_head_line();
  draw_all();
  if (first) watch_detail();
  else show_selection();
  // Tests look for this: everything was drawn.
  document.documentElement.dataset.drawn = String(drawn.size);
}

// Shows what changed: {study?, trials?, volumes?, insights?}. Rows of trials are whole, found by
// their names; new ones come last.
function apply_changes(changes) {
  for (const {trial} of merge_changes(changes)) row_texts.delete(trial.name);
  fill_choices();
  find_selected();
  draw_head_line();
  draw_all();
  show_selection();
  refresh_detail();
}

// A page without data waits for load_document().
function start() {
  watch_theme();
  const text = document.getElementById('data').textContent.trim();
  if (text !== '') load_document(JSON.parse(text));
}

start();
