// Trials that failed or broke a constraint, grouped by cause.
'use strict';

const kNamesAtOnce = 5;

/** @param {TrialRow} trial */
function is_failed(trial) {
  return ['Failed', 'Infeasible'].includes(kind_of(trial));
}

// Messages that differ in numbers only have one cause. The longest list of trials comes first.
function causes_of_failures() {
  const causes = new Map();
  for (const trial of trials.filter(is_failed)) {
    const kind = kind_of(trial);
    const text = trial.ending || (kind === 'Failed' ? 'failed without a message' : 'its result is infeasible');
    const key = kind + ' ' + text.replace(/[-+]?\d+(\.\d+)?(e[-+]?\d+)?/gi, '#');
    if (!causes.has(key)) causes.set(key, {text, kind, failed: []});
    causes.get(key).failed.push(trial);
  }
  return [...causes.values()].sort((a, b) => b.failed.length - a.failed.length);
}

/** @param {TrialRow} trial */
function trial_button(trial) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'link';
  button.textContent = trial.name;
  button.addEventListener('click', () => select_trial(trial.name));
  return button;
}

function draw_failures() {
  const section = document.getElementById('failures');
  const causes = causes_of_failures();
  const list = section.querySelector('ul');
  list.textContent = '';
  for (const {text, kind, failed} of causes.slice(0, 20)) {
    const item = list.appendChild(document.createElement('li'));
    const count = item.appendChild(document.createElement('b'));
    count.textContent = failed.length + ' × ' + kind.toLowerCase();
    item.appendChild(document.createElement('p')).textContent = short_text(text, 300);
    const where = item.appendChild(document.createElement('p'));
    where.className = 'quiet';
    failed.slice(0, kNamesAtOnce).forEach((trial) => where.append(trial_button(trial), ' '));
    if (failed.length > kNamesAtOnce) where.append('and ' + (failed.length - kNamesAtOnce) + ' more');
  }
  const more = list.nextElementSibling;
  more.hidden = causes.length <= 20;
  more.textContent = 'and ' + (causes.length - 20) + ' more causes';
}
