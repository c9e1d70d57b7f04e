// The panel about one trial, and the address that opens it.
'use strict';

/** @type {string | null} */
let selected = null;   // name of the trial in the panel
let came_from = null;  // the element that had the focus before
/** @type {((panel: HTMLElement, trial: TrialRow) => void) | null} */
let live_notes = null;  // shows the notes on a page that follows (serve/pages/panel.js)

// What a trial's newest report may say of its GPU: by which name, and how it is read.
/** @type {[name: string, term: string, text: (value: number) => string][]} */
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

// The text of `fettle why`. A line that is too long goes on below its text, not below its title.
/** @param {HTMLElement} block */
function fill_why(block, text) {
  block.classList.add('why');
  block.textContent = '';
  for (const line of text.trim().split('\n')) {
    block.appendChild(document.createElement('div')).textContent = line || ' ';
  }
}

// Shows the text of `fettle why` and the end of the log; where the page lacks them, the commands.
/** @param {TrialRow} trial */
function add_notes(panel, trial) {
  if (live_notes) return live_notes(panel, trial);
  const note = own(data.notes, trial.name) ?? {};
  const add_text = (title, text) => {
    panel.appendChild(document.createElement('h3')).textContent = title;
    const block = panel.appendChild(document.createElement('pre'));
    block.tabIndex = 0;
    block.textContent = text;
    return block;
  };
  fill_why(add_text('Why', ''), note.why ?? 'fettle why ' + trial.name);
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
  if (selected === null) came_from = document.activeElement;
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
  close.addEventListener('click', close_trial);
  const title = panel.appendChild(document.createElement('h2'));
  title.textContent = trial.name;
  title.id = 'detail-title';
  fill_facts(panel.appendChild(document.createElement('dl')), trial);
  add_notes(panel, trial);
  mark_row();
  close.focus({preventScroll: true});
}

/** @param {TrialRow} trial */
function fill_facts(list, trial) {
  list.textContent = '';
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
}

// The facts of the trial in the panel, after it changed; the notes below them stay.
function refresh_detail() {
  const trial = names.get(selected);
  if (trial) fill_facts(document.querySelector('#detail dl'), trial);
}

function close_trial() {
  document.getElementById('detail').hidden = true;
  selected = null;
  set_address(null);
  mark_row();
  if (came_from?.isConnected) came_from.focus({preventScroll: true});
  else if (came_from?.dataset.trial) focus_row(rows_of.indexOf(names.get(came_from.dataset.trial)));
  came_from = null;
}

function watch_detail() {
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && selected !== null) close_trial();
  });
  const open_of_address = () => {
    const trial = trial_of_address();
    if (trial) select_trial(trial.name);
  };
  window.addEventListener('hashchange', open_of_address);
  open_of_address();
}
