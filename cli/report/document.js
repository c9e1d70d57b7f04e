// The Study as the rest of the page works with it. page_data() (study_data.cpp, insight.cpp) writes
// the document; changes to it are merged here. Times are milliseconds since the start. Nothing here
// touches the page.
'use strict';

/** @typedef {number | string | boolean} Value  of a parameter */
/** @typedef {{metric: string, maximize: boolean, goal: number | null}} Objective */
/** @typedef {{created: number, running: number, completed: number, stopped: number, failed: number,
 *             infeasible: number}} Counts */
/**
 * @typedef {object} Parameter
 * @property {string} name
 * @property {string} env  the variable of the environment
 * @property {'Double' | 'Integer' | 'Categorical' | 'Boolean'} type
 * @property {boolean} log
 * @property {Value[]} [values]  choices; min and max where there are none
 * @property {number} [min]
 * @property {number} [max]
 * @property {{parameter: string, in: Value[]}} [when]
 */
/**
 * @typedef {object} Study
 * @property {string} name
 * @property {string} state
 * @property {string} message
 * @property {string} algorithm
 * @property {string} earlyStopping
 * @property {string} unit
 * @property {number} maxStep
 * @property {number | null} budget
 * @property {number} parallelism
 * @property {Counts} counts
 * @property {number | null} gpuHours
 * @property {string | null} costUnit
 * @property {number | null} activeSeconds
 * @property {number | null} tookSeconds
 * @property {string} begun
 * @property {string} written
 * @property {Parameter[]} parameters
 * @property {Objective[]} objectives
 * @property {string[]} front
 */
/** @typedef {[begin: number, end: number, outcome: string, gpu_seconds: number | null]} Run */
/** @typedef {{mean: number, deviation: number, beats: number, trials: number}} Expectation */
/**
 * @typedef {object} TrialRow
 * @property {string} name
 * @property {number} index
 * @property {string} phase
 * @property {number} step
 * @property {(number | null)[]} values  of each objective
 * @property {boolean} infeasible
 * @property {Object<string, Value>} parameters
 * @property {number} basis
 * @property {number | null} seconds
 * @property {(number | null)[][]} curve  [step, value of each objective ...]
 * @property {Run[]} runs
 * @property {Object<string, number | null>} device
 * @property {number} [seq]
 * @property {number} [endedAt]
 * @property {number | null} [cost]
 * @property {number} [repeats]
 * @property {string} [ending]
 * @property {string} [stopReason]
 * @property {Expectation} [expected]
 */
/** @typedef {{parameter: string, main: number, total: number, deviation: number}} Importance */
/** @typedef {{values: Value[], means: number[], deviations: number[]}} Dependence */
/** @typedef {{first: string, second: string, share: number, firstValues: Value[], secondValues: Value[],
 *             means: number[], deviations: number[]}} Surface */
/** @typedef {{why?: string, trials?: number, quality?: number, clipped?: number, importance?: Importance[],
 *             pairs?: {first: string, second: string, share: number}[], surface?: Surface | null,
 *             dependence?: Object<string, Dependence>}} Insight  why: there is none */
/** @typedef {{why?: string, log?: string, where?: string, missing?: string}} Note */
/** @typedef {{study: Study, trials: TrialRow[], insights: Insight[], volumes: [number, number | null][],
 *             notes?: Object<string, Note>}} StudyDocument */
/** @typedef {{study?: Study, trials?: TrialRow[], insights?: Insight[], volumes?: [number, number | null][]}} Changes */
/** @typedef {{trial: TrialRow, before: TrialRow | null}} Merged */

/** @type {StudyDocument} */
let data = null;        // the whole document
/** @type {Study} */
let study = null;       // its parts
/** @type {TrialRow[]} */
let trials = [];
/** @type {Map<string, TrialRow>} */
let names = new Map();  // a trial's name to the trial, which stays the same object for good
/** @type {Set<string>} */
let front = new Set();  // names
let version = 0;        // of what is shown: grows with each change

/**
 * A function of an objective whose results are kept until what is shown changes.
 * @template T
 * @param {(objective: number) => T} make
 * @returns {(objective: number) => T}
 */
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
/** @param {Study} next */
function take_study(next) {
  next.message = plain_text(next.message);
  for (const each of next.objectives) each.metric = plain_text(each.metric);
  data.study = study = next;
  front = new Set(study.front);
}

/** @param {TrialRow} trial */
function make_trial_plain(trial) {
  if (trial.ending) trial.ending = plain_text(trial.ending);
}

/** @param {StudyDocument} loaded */
function take_document(loaded) {
  ++version;
  data = loaded;
  trials = data.trials;
  names = new Map(trials.map((trial) => [trial.name, trial]));
  trials.forEach(make_trial_plain);
  take_study(data.study);
}

// Makes a row the trial of its name. Returns the trial, and what it was before (null: it is new).
/**
 * @param {TrialRow} row
 * @returns {Merged}
 */
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
/**
 * @param {Changes} changes
 * @returns {Merged[]}
 */
function merge_changes(changes) {
  ++version;
  const merged = (changes.trials ?? []).map(merge_trial);
  if (changes.study) take_study(changes.study);
  if (changes.volumes) data.volumes = changes.volumes;
  if (changes.insights) data.insights = changes.insights;
  return merged;
}
