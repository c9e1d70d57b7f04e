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

function fill_select(id, chosen, change) {
  const select = document.getElementById(id);
  study.objectives.forEach((each, i) => {
    const option = select.appendChild(document.createElement('option'));
    option.value = String(i);
    option.textContent = each.metric;
  });
  select.value = String(chosen);
  select.addEventListener('change', change);
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

function fill_along() {
  const ways = {results: 'results', time: 'time'};
  if (study.gpuHours > 0) ways.gpu = 'GPU-hours';
  const select = document.getElementById('along');
  for (const [value, text] of Object.entries(ways)) {
    const option = select.appendChild(document.createElement('option'));
    option.value = value;
    option.textContent = text;
  }
  select.addEventListener('change', draw_best_so_far);
}

function watch_choices() {
  document.getElementById('objective-label').hidden = study.objectives.length < 2;
  fill_select('objective', 0, (event) => {
    objective = Number(event.target.value);
    axis_order = null;
    chosen_ranges.clear();
    draw_all();
    show_selection();
  });
  fill_select('front-x', 0, draw_front);
  fill_select('front-y', Math.min(1, study.objectives.length - 1), draw_front);
  fill_along();
  const some_lack = trials.some((trial) => kind_of(trial) !== 'Completed' && trial.values.some((v) => v !== null));
  document.getElementById('stopped-label').hidden = !some_lack || study.counts.completed === 0;
  document.getElementById('with-stopped').addEventListener('change', draw_parameters);
}

function start() {
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  set_theme(dark.matches ? 'dark' : 'light');
  dark.addEventListener('change', () => set_theme(dark.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener('click', () =>
    set_theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  watch_choices();
  watch_parallel();
  watch_selection();
  watch_table();
  watch_downloads();
  draw_head_line();
  draw_all();
  watch_detail();
  window.addEventListener('resize', draw_parallel);
  // Tests look for this: everything was drawn.
  document.documentElement.dataset.drawn = String(drawn.size);
}

start();
