// The notes in the panel of a trial, on a page that follows: why it was tried, and its log as it
// grows.
'use strict';

const kMostLog = 256 * 1024;  // characters of a log that the page keeps
const kAskAgainMs = 3000;
/** @type {EventSource | null} */
let log_stream = null;
let log_timer = 0;

function stop_log() {
  log_stream?.close();
  log_stream = null;
  clearTimeout(log_timer);
}

function trial_address(name, what) {
  return '/api/trial/' + encodeURIComponent(name) + '/' + what;
}

function add_block(panel, title) {
  const head = panel.appendChild(document.createElement('h3'));
  head.textContent = title;
  const block = panel.appendChild(document.createElement('pre'));
  block.tabIndex = 0;
  return {head, block};
}

/**
 * @param {HTMLElement} block
 * @param {string} name  of a trial
 */
async function show_why(block, name) {
  block.textContent = '…';
  try {
    const answer = await fetch(trial_address(name, 'why'));
    const said = await answer.json();
    fill_why(block, plain_text(said.text ?? said.error));
  } catch {
    block.textContent = 'The server does not answer.';
  }
}

// Keeps to the end, unless the reader has scrolled away from it.
/**
 * @param {HTMLElement} block
 * @param {{text: string, skipped: number}} added
 */
function append_log(block, {text, skipped}) {
  const at_end = block.scrollHeight - block.scrollTop - block.clientHeight < 30;
  if (skipped > 0) block.append('… ' + skipped + ' bytes are left out …\n');
  block.append(plain_text(text));
  if (block.textContent.length > kMostLog) {
    const kept = block.textContent.slice(-kMostLog / 2);
    block.textContent = '…' + kept.slice(kept.indexOf('\n'));
  }
  if (at_end) block.scrollTop = block.scrollHeight;
}

function is_over(name) {
  return ['Completed', 'Stopped', 'Failed'].includes(names.get(name)?.phase);
}

/**
 * @param {HTMLElement} head
 * @param {HTMLElement} block
 * @param {string} name  of a trial
 */
function follow_log(head, block, name) {
  stop_log();
  const note = head.appendChild(document.createElement('span'));
  note.className = 'quiet';
  log_stream = new EventSource(trial_address(name, 'log?follow=1'));
  log_stream.addEventListener('log', (event) => {
    note.textContent = ' · follows';
    append_log(block, JSON.parse(event.data));
  });
  log_stream.addEventListener('end', (event) => {
    stop_log();
    const {message} = JSON.parse(event.data);
    note.textContent = message ? ' · ' + plain_text(message) : '';
    if (is_over(name)) return;
    log_timer = setTimeout(() => {  // it has not begun, or its next run has not
      block.textContent = '';
      note.remove();
      follow_log(head, block, name);
    }, kAskAgainMs);
  });
}

// In the place of the notes that a report holds (report/detail.js).
/**
 * @param {HTMLElement} panel
 * @param {TrialRow} trial
 */
function show_live_notes(panel, trial) {
  const why = add_block(panel, 'Why');
  show_why(why.block, trial.name);
  const log = add_block(panel, 'Log');
  log.block.classList.add('log');
  follow_log(log.head, log.block, trial.name);
}

live_notes = show_live_notes;
new MutationObserver(() => {
  if (document.getElementById('detail').hidden) stop_log();
}).observe(document.getElementById('detail'), {attributes: true, attributeFilter: ['hidden']});
