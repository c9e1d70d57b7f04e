// The Study as the rest of the page works with it. page_data() (study_data.cpp, insight.cpp) writes
// the document; changes to it are merged here. Times are milliseconds since the start. Nothing here
// touches the page.
'use strict';

let data = null;        // the whole document
let study = null;       // its parts
let trials = [];
let names = new Map();  // a trial's name to the trial, which stays the same object for good
let front = new Set();  // names
let version = 0;        // of what is shown: grows with each change

// A function of an objective whose results are kept until what is shown changes.
function kept(make) {
  const known = new Map();
  let known_at = -1;
  return (of) => {
    if (known_at !== version) known.clear();
    known_at = version;
    if (!known.has(of)) known.set(of, make(of));
    return known.get(of);
  };
}

// Without characters that reverse the text around them.
function plain_text(text) {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '?');
}

// Messages and names of metrics come from programs, and stand in sentences.
function take_study(next) {
  next.message = plain_text(next.message);
  for (const each of next.objectives) each.metric = plain_text(each.metric);
  data.study = study = next;
  front = new Set(study.front);
}

function make_trial_plain(trial) {
  if (trial.ending) trial.ending = plain_text(trial.ending);
}

function take_document(loaded) {
  ++version;
  data = loaded;
  trials = data.trials;
  names = new Map(trials.map((trial) => [trial.name, trial]));
  trials.forEach(make_trial_plain);
  take_study(data.study);
}

// Makes a row the trial of its name. Returns the trial, and what it was before (null: it is new).
function merge_trial(row) {
  make_trial_plain(row);
  const trial = names.get(row.name);
  if (!trial) {
    trials.push(row);
    names.set(row.name, row);
    return {trial: row, before: null};
  }
  const before = {...trial};
  for (const field of Object.keys(trial)) if (!Object.hasOwn(row, field)) delete trial[field];
  Object.assign(trial, row);
  return {trial, before};
}

// Merges the parts that changed into the document. Returns the trials of the rows, as merge_trial().
function merge_changes(changes) {
  ++version;
  const merged = (changes.trials ?? []).map(merge_trial);
  if (changes.study) take_study(changes.study);
  if (changes.volumes) data.volumes = changes.volumes;
  if (changes.insights) data.insights = changes.insights;
  return merged;
}
