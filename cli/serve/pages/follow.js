// Lets the page of the report follow its Study.
'use strict';

const followed = decodeURIComponent(location.pathname.split('/').pop());
/** @type {string | null} */
let followed_key = null;  // of the document that is shown

function add_navigation() {
  const bar = document.createElement('nav');
  const all = bar.appendChild(document.createElement('a'));
  all.href = '/';
  all.textContent = '← All studies';
  const compare = bar.appendChild(document.createElement('a'));
  compare.href = '/compare?study=' + encodeURIComponent(followed);
  compare.textContent = 'Compare';
  const sign = bar.appendChild(document.createElement('span'));
  sign.id = 'following';
  document.querySelector('header').before(bar);
}

// What the page says until there is a Study.
function show_waiting(text) {
  document.documentElement.classList.add('waiting');
  document.getElementById('name').textContent = followed;
  document.getElementById('message').textContent = text;
}

/** @param {StudyDocument & {key: string}} loaded */
function show_document(loaded) {
  // Another Study of this name: nothing that the reader chose has a meaning.
  if (followed_key !== null && followed_key !== loaded.key) return location.reload();
  followed_key = loaded.key;
  show_banner('gone', '');
  document.documentElement.classList.remove('waiting');
  document.title = loaded.study.name + ' · Fettle';
  load_document(loaded);
}

/** @param {{message: string}} gone */
function show_gone({message}) {
  if (followed_key === null) {
    show_waiting('This page shows the study as soon as there is one: ' + message + '.');
  } else {
    show_banner('gone', 'This study was deleted. The page shows what it last was.');
  }
}

add_navigation();
show_waiting('Reading …');
open_stream('/events?study=' + encodeURIComponent(followed), {
  document: show_document,
  change: apply_changes,
  insight: apply_changes,
  gone: show_gone,
  reset: () => location.reload(),
});
