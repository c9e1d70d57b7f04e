// Charts of results: the best so far, the Pareto front and its volume, predictions.
'use strict';

const kStartup = 10;  // results below which a prediction is a guess

// GPU-hours that all runs had used by each of some ascending times.
function gpu_hours_until(times) {
  const turns = [];  // [time, change of GPUs in use, GPU-seconds of runs without length]
  for (const [begin, end, , gpu_seconds] of trials.flatMap((trial) => trial.runs)) {
    const rate = end > begin ? (gpu_seconds ?? 0) / (end - begin) : 0;
    turns.push([begin, rate, end > begin ? 0 : gpu_seconds ?? 0], [end, -rate, 0]);
  }
  turns.sort((a, b) => a[0] - b[0]);
  let [at, rate, seconds, next] = [turns[0]?.[0] ?? 0, 0, 0, 0];
  return times.map((time) => {
    for (; next < turns.length && turns[next][0] <= time; ++next) {
      seconds += rate * (turns[next][0] - at) + turns[next][2];
      at = turns[next][0];
      rate += turns[next][1];
    }
    return Math.max(seconds + rate * Math.max(time - at, 0), 0) / 3600;
  });
}

// The same for times in any order.
function gpu_hours_at(times) {
  const order = times.map((_, i) => i).sort((a, b) => times[a] - times[b]);
  const hours = gpu_hours_until(order.map((i) => times[i]));
  const out = [];
  order.forEach((i, at) => (out[i] = hours[at]));
  return out;
}

function time_unit(last) {
  if (last > 7200000) return {size: 3600000, name: 'hours'};
  return last > 120000 ? {size: 60000, name: 'minutes'} : {size: 1000, name: 'seconds'};
}

// Along what results are drawn: a title, and a place for each result.
const kAlong = {
  results: (results) => ({title: 'results', places: results.map((_, i) => i + 1)}),
  time: (results) => {
    const times = results.map((trial) => trial.endedAt ?? 0);
    const unit = time_unit(times.length > 0 ? extent(times)[1] : 0);
    return {title: unit.name + ' since the start', places: times.map((time) => time / unit.size)};
  },
  gpu: (results) => ({title: 'GPU-hours of all trials', places: gpu_hours_at(results.map((trial) => trial.endedAt ?? 0))}),
};

function draw_best_so_far() {
  const section = document.getElementById('best-so-far');
  const results = results_of(objective);
  const values = results.map((trial) => trial.values[objective]);
  const goal = study.objectives[objective].goal;
  const axis = value_axis(is_near(goal, values) ? [...values, goal] : values, objective);
  const way = document.getElementById('along').value;
  const {title, places} = kAlong[way](results);
  const steps = [];  // where the best changes, and the end
  let [best, steps_to] = [null, null];
  results.forEach((trial, i) => {
    const value = trial.values[objective];
    const leads = best === null || is_better(objective, value, best);
    if (leads && !trial.repeats) best = value;
    if (i > 0 && best === steps_to && i + 1 < results.length) return;
    steps_to = best;
    steps.push({x: places[i], y: axis.clamp(best)});
  });
  const points = results.map((trial, i) => ({x: places[i], y: axis.clamp(trial.values[objective]), trial,
    turn: turn_of(trial.values[objective], axis, true)}));
  const last = places.length > 0 ? extent(places)[1] : 0;
  const datasets = [
    plain_line(steps, 'best', {stepped: 'before', borderWidth: 2.5, pointRadius: steps.length === 1 ? 5 : 0}),
    ...dots(points),
  ];
  if (is_near(goal, values)) {
    datasets.push(plain_line([{x: 0, y: goal}, {x: last * 1.02 || 1, y: goal}], 'good', {borderDash: [6, 5]}));
  }
  const counted = way === 'results';
  const x = {type: 'linear', min: counted && results.length > 1 ? 1 : 0, max: counted ? Math.max(last, 2) : last || 1};
  const scales = {x: scale_of(x, title), y: scale_of(axis, metric())};
  if (counted) scales.x.ticks.precision = 0;
  say(section, beyond_text([{axis, values}]));
  draw(section, results.length > 0 && {data: {datasets}, options: trial_options(scales)}, 'No result yet.');
}

function draw_front() {
  const section = document.getElementById('front');
  const shown = ['front-x', 'front-y'].map((id) => Number(document.getElementById(id).value));
  const [x, y] = shown;
  const results = results_of(x).filter((trial) => has_value(trial, y));
  const columns = shown.map((i) => results.map((trial) => trial.values[i]));
  const axes = shown.map((i, at) => value_axis(columns[at], i));
  const at = (trial) => ({x: axes[0].clamp(trial.values[x]), y: axes[1].clamp(trial.values[y]), trial,
    turn: turn_of(trial.values[y], axes[1], true) || turn_of(trial.values[x], axes[0], false)});
  const chosen = results.filter((trial) => front.has(trial.name)).map(at);
  const others = results.filter((trial) => !front.has(trial.name)).map(at);
  chosen.sort((a, b) => a.x - b.x);
  const leaders = {type: 'scatter', clip: 8, order: 1, pointRadius: 5, pointHoverRadius: 7, pointBorderWidth: 0,
    make: () => chosen.filter((point) => is_selected(point.trial)), ink: {pointBackgroundColor: () => colors.best}};
  const rest = {type: 'scatter', clip: 8, order: 4, pointRadius: 4, pointBorderWidth: 0,
    make: () => chosen.filter((point) => !is_selected(point.trial)), ink: {pointBackgroundColor: () => colors.line}};
  const datasets = [leaders, rest, ...dots(others)];
  // In the plane of two objectives the front is a staircase; in more it is not a line.
  if (study.objectives.length === 2) {
    datasets.push(plain_line(chosen.map(({x, y}) => ({x, y})), 'best',
      {stepped: study.objectives[x].maximize ? 'after' : 'before', order: 3}));
  }
  const title = (i) => study.objectives[i].metric + (study.objectives[i].maximize ? ' →' : ' ←');
  const scales = {x: scale_of(axes[0], title(x)), y: scale_of(axes[1], title(y))};
  say(section, beyond_text(shown.map((i, at) =>
    ({axis: axes[at], values: columns[at], name: study.objectives[i].metric}))));
  draw(section, results.length > 0 && {data: {datasets}, options: trial_options(scales)},
    'No result yet.');
}

function draw_volume() {
  const section = document.getElementById('volume');
  const points = data.volumes.map(([results, volume]) => ({x: results, y: volume}));
  const last = points.length > 0 ? points[points.length - 1].x : 1;
  const x = {type: 'linear', min: last > 1 ? 1 : 0, max: Math.max(last, 2)};
  const scales = {x: scale_of(x, 'results'), y: scale_of({type: 'linear', min: 0}, '')};
  scales.x.ticks.precision = 0;
  const datasets = [plain_line(points, 'best', {stepped: 'before', borderWidth: 2.5,
    pointRadius: points.length === 1 ? 5 : 0})];
  draw(section, points.length > 0 && {data: {datasets}, options: trial_options(scales)},
    'No result yet.');
}

// Ranks from 0; equal values share their mean rank.
function ranks_of(values) {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const ranks = new Array(values.length);
  for (let from = 0; from < order.length;) {
    let to = from;
    while (to + 1 < order.length && values[order[to + 1]] === values[order[from]]) ++to;
    for (let i = from; i <= to; ++i) ranks[order[i]] = (from + to) / 2;
    from = to + 1;
  }
  return ranks;
}

// Spearman's; null where it is not defined.
function rank_correlation(a, b) {
  const [first, second] = [ranks_of(a), ranks_of(b)];
  const mean = (a.length - 1) / 2;
  const product = (p, q) => p.reduce((sum, value, i) => sum + (value - mean) * (q[i] - mean), 0);
  const size = Math.sqrt(product(first, first) * product(second, second));
  return size > 0 ? product(first, second) / size : null;
}

function median(values) {
  return quantile(Float64Array.from(values).sort(), 0.5);
}

// How good the predictions were once there was something to learn from.
function verdict_text(judged) {
  if (judged.length < 5) return '';
  const results = judged.map((trial) => trial.values[0]);
  const predicted = judged.map((trial) => trial.expected.mean);
  const order = rank_correlation(results, predicted);
  const bias = median(judged.map((trial) => trial.values[0] - trial.expected.mean));
  const better = bias !== 0 && (bias > 0) === study.objectives[0].maximize;
  let text = 'Over the ' + judged.length + ' later ones: ' + (order === null ? '' : 'rank correlation ' +
    order.toFixed(2) + '; ') + 'the median result is ' + number_text(Math.abs(bias)) + (bias > 0 ? ' above' : ' below') +
    ' its prediction.';
  if (better && study.counts.stopped > 0) {
    text += ' The model learns from stopped trials, too; results are of the better ones, which ran on.';
  }
  return text;
}

function draw_expectation() {
  const section = document.getElementById('expectation');
  const shown = results_of(0).filter((trial) => trial.expected);
  const late = (trial) => trial.expected.trials >= kStartup;
  const judged = shown.filter(late);
  document.getElementById('verdict').textContent = verdict_text(judged);
  const scaled = judged.length >= 5 ? judged : shown;
  const axis = value_axis(scaled.flatMap((trial) => [trial.values[0], trial.expected.mean]), 0);
  const point = (trial) => ({x: axis.clamp(trial.expected.mean), y: axis.clamp(trial.values[0]), trial,
    turn: turn_of(trial.values[0], axis, true) || turn_of(trial.expected.mean, axis, false)});
  const ends = [axis.min, axis.max].map((end) => ({x: end, y: end}));
  const early = {type: 'scatter', clip: 6, order: 6, pointRadius: 3, pointHoverRadius: 6, pointBorderWidth: 0,
    make: () => shown.filter((trial) => !late(trial)).map(point), ink: {pointBackgroundColor: () => colors['worst-line']}};
  const datasets = [...dots(judged.map(point)), early, plain_line(ends, 'quiet', {borderDash: [5, 5], borderWidth: 1})];
  const scales = {x: scale_of(axis, 'predicted'), y: scale_of(axis, 'result')};
  const options = trial_options(scales);
  options.plugins.tooltip.callbacks.afterTitle = (items) =>
    items[0]?.raw.trial ? expected_text(items[0].raw.trial) : '';
  draw(section, shown.length > 0 && {data: {datasets}, options},
    'Too few trials have ended to predict anything.');
}

/** @param {TrialRow} trial */
function expected_text(trial) {
  const expected = trial.expected;
  return 'expected ' + number_text(expected.mean) + ' ± ' + number_text(expected.deviation) +
    ', better than ' + percent_text(expected.beats) + ' of random points (' + expected.trials +
    ' trials known)';
}
