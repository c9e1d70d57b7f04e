// What follows from the Study's data (document.js), and how numbers are written. Nothing here
// touches the page.
'use strict';

function is_better(objective, a, b) {
  return study.objectives[objective].maximize ? a > b : a < b;
}

// "Completed" and so on; a result that breaks a constraint or is not finite is "Infeasible".
/** @param {TrialRow} trial */
function kind_of(trial) {
  return trial.phase === 'Completed' && trial.infeasible ? 'Infeasible' : trial.phase;
}

/** @param {TrialRow} trial */
function has_value(trial, objective) {
  return typeof trial.values[objective] === 'number';
}

// Final, feasible results in the order in which they were learnt. A replicate (`repeats`) is never
// the best by its own value.
const results_of = kept((objective) => trials
  .filter((trial) => kind_of(trial) === 'Completed' && has_value(trial, objective))
  .sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0)));

const best_of = kept((objective) => {
  // Then their means decide.
  if (trials.some((trial) => trial.repeats)) return names.get(study.front[0]) ?? null;
  let best = null;
  for (const trial of results_of(objective)) {
    if (!best || is_better(objective, trial.values[objective], best.values[objective])) best = trial;
  }
  return best;
});

// Of every trial with a value: 0 for the worst to 1 for the best.
const standings_of = kept((objective) => {
  const ranked = trials.filter((trial) => has_value(trial, objective));
  const sign = study.objectives[objective].maximize ? 1 : -1;
  ranked.sort((a, b) => sign * (a.values[objective] - b.values[objective]));
  const last = Math.max(ranked.length - 1, 1);
  return new Map(ranked.map((trial, i) => [trial.name, ranked.length > 1 ? i / last : 1]));
});

// Four significant digits.
function number_text(value) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, 'e');
  return String(Number(value.toPrecision(4)));
}

function value_text(value) {
  return typeof value === 'number' ? number_text(value) : String(value ?? '–');
}

function short_text(text, most) {
  return text.length > most ? text.slice(0, most - 1) + '…' : text;
}

// The rule's own sentence about a stop without its numbers; the whole stands in the panel.
function short_ending(text) {
  const rung = /^\w+: (rung \d+) \(.*?\): \S+ is (not among the best .*)$/.exec(text);
  return rung ? rung[1] + ': ' + rung[2] : short_text(text, 80);
}

function percent_text(share) {
  const percent = 100 * share;
  return (percent >= 10 || percent === 0 ? Math.round(percent) : percent.toFixed(1)) + ' %';
}

function duration_text(ms) {
  if (Math.round(ms) < 1000) return Math.round(ms) + ' ms';
  if (Math.round(ms / 100) < 600) return (ms / 1000).toFixed(1) + ' s';
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes + 'm ' + (seconds % 60) + 's';
  return Math.floor(minutes / 60) + 'h ' + (minutes % 60) + 'm';
}

// Parameters and metrics may be called `constructor`: only what an object has itself counts.
function own(object, name) {
  return object && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** @param {TrialRow} trial */
function has_parameter(trial, name) {
  return Object.hasOwn(trial.parameters, name);
}

/** @param {TrialRow} trial */
function parameters_text(trial) {
  return Object.entries(trial.parameters).map(([name, value]) => name + ' ' + value_text(value));
}

// The lowest and the highest; any number of values (Math.min(...values) has as many arguments).
function extent(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Infinity, -Infinity]);
}

function quantile(sorted, share) {
  return sorted[Math.floor(share * (sorted.length - 1))];
}

// How an objective's values lie on an axis: logarithmic where they span many sizes, otherwise cut
// off on the bad side where a few are far out; clamp() puts those on the edge. `always` are values
// that have to lie on it.
function value_axis(values, objective, always = []) {
  return axis_of(values, study.objectives[objective].maximize, always);
}

/** @param {boolean} maximize */
function axis_of(values, maximize, always = []) {
  const sorted = Float64Array.from(values.filter(Number.isFinite)).sort();
  let low = sorted[0] ?? 0;
  let high = sorted[sorted.length - 1] ?? 1;
  const clamp = (value) => (value === null ? NaN : Math.min(Math.max(value, low), high));
  const [least, most] = extent([low, high, ...always]);
  if (least > 0 && most / least > 300) {
    [low, high] = [least, most];
    return {type: 'logarithmic', min: low * 0.9, max: high * 1.1, low, high, clamp};
  }
  const range = sorted.length > 0 ? quantile(sorted, 0.75) - quantile(sorted, 0.25) : 0;
  if (range > 0 && maximize) {
    low = Math.max(low, quantile(sorted, 0.25) - 5 * range);
  } else if (range > 0) {
    high = Math.min(high, quantile(sorted, 0.75) + 5 * range);
  }
  if (always.length > 0) [low, high] = extent([low, high, ...always]);
  const margin = high > low ? 0.05 * (high - low) : Math.abs(high) * 0.1 || 1;
  return {type: 'linear', min: low - margin, max: high + margin, low, high, clamp};
}

// Where values of a parameter lie: choices at 0, 1, 2 ...
/** @param {Parameter} parameter */
function parameter_axis(parameter) {
  if (!parameter.values) {
    const log = parameter.log && parameter.min > 0;
    // Room for dots at the ends of a short row of integers.
    const room = !log && parameter.type === 'Integer' && parameter.max - parameter.min < 50 ? 0.5 : 0;
    return {
      type: log ? 'logarithmic' : 'linear',
      min: parameter.min - room,
      max: parameter.max + room,
      place: (value) => value,
      share: (value) => share_between(value, parameter.min, parameter.max, log),
      low: value_text(parameter.min),
      high: value_text(parameter.max),
    };
  }
  const places = new Map(parameter.values.map((value, i) => [JSON.stringify(value), i]));
  const count = parameter.values.length;
  const place = (value) => places.get(JSON.stringify(value));
  return {
    type: 'linear',
    min: -0.5,
    max: count - 0.5,
    labels: parameter.values.map(value_text),
    place,
    share: (value) => (place(value) + 0.5) / count,
  };
}

function share_between(value, low, high, log) {
  if (high <= low) return 0.5;
  if (log) return Math.log(value / low) / Math.log(high / low);
  return (value - low) / (high - low);
}
