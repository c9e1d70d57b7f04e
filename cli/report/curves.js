// Learning curves. Of many the best are lines, and the others a map of where they pass.
'use strict';

const kShades = 8;        // of lines, from the worst to the best
const kMostLines = 300;   // more curves than these are not drawn as lines,
const kBestLines = 50;    // but the best
const kMostRunning = 50;  // and those that run
const kDensity = {columns: 72, rows: 36};

/** @param {TrialRow} trial */
function curve_points(trial, axis) {
  return trial.curve.map((point) => ({
    x: point[0],
    y: axis.clamp(point[1 + objective]),
    trial,
  }));
}

// How often curves of trials pass each cell between the first and the last step, the lowest row first.
function density_of(chosen, axis) {
  const {columns, rows} = kDensity;
  const counts = new Float64Array(columns * rows);
  const log = axis.type === 'logarithmic';
  const scale = columns / Math.max(study.maxStep, 1);
  const field = 1 + objective;
  for (const {curve} of chosen) {
    for (let i = 1; i < curve.length; ++i) {
      const ends = [curve[i - 1][0] * scale, curve[i][0] * scale];
      const [low, high] = [axis.clamp(curve[i - 1][field]), axis.clamp(curve[i][field])];
      for (let column = Math.ceil(ends[0] - 0.5); column + 0.5 < ends[1] && column < columns; ++column) {
        const value = low + (high - low) * (column + 0.5 - ends[0]) / (ends[1] - ends[0]);
        const row = Math.floor(rows * share_between(value, axis.min, axis.max, log));
        if (row >= 0 && row < rows) counts[column * rows + row] += 1;
      }
    }
  }
  return counts;
}

let density = null;  // {others, axis, counts} where there are many curves

function count_density() {
  if (density) density.counts = density_of(density.others.filter(is_selected), density.axis);
}

const kDensityMap = {
  id: 'density',
  beforeDatasetsDraw(chart) {
    if (!density) return;
    const {columns, rows} = kDensity;
    const most = Math.log1p(density.counts.reduce((a, b) => Math.max(a, b), 0));
    const {ctx, chartArea: area} = chart;
    const width = area.width / columns;
    const height = area.height / rows;
    ctx.save();
    ctx.fillStyle = colors.accent;
    density.counts.forEach((count, at) => {
      if (count === 0) return;
      ctx.globalAlpha = 0.04 + 0.36 * Math.log1p(count) / most;
      ctx.fillRect(area.left + Math.floor(at / rows) * width, area.bottom - (at % rows + 1) * height,
        width + 0.5, height + 0.5);
    });
    ctx.restore();
  },
};

// Curves of one shade are one line with gaps, so that hundreds are drawn at once.
function curve_lines(shown, axis, thin) {
  const standings = standings_of(objective);
  const best = best_of(objective);
  const shade_at = (trial) => Math.floor((standings.get(trial.name) ?? 0) * (kShades - 1));
  const joined = (chosen) => chosen.flatMap((trial) => [...curve_points(trial, axis), {x: NaN, y: NaN}]);
  const line = (choose, color, width, order) => ({type: 'line', borderWidth: width, order, pointRadius: 0,
    pointHitRadius: 6, spanGaps: false, make: () => joined(shown.filter(choose)), ink: {borderColor: color}});
  const sets = Array.from({length: kShades}, (_, i) =>
    line((trial) => trial !== best && is_selected(trial) && shade_at(trial) === i,
      () => shade(i / (kShades - 1)), thin ? 1 : 1.3, 20 - i));
  sets.push(line((trial) => trial !== best && !is_selected(trial), () => colors.line, 0.8, 30));
  if (best) {
    const single = best.curve.length < 2;
    sets.push({...line((trial) => trial === best, () => colors.best, 2.8, 1), pointRadius: single ? 4 : 0});
  }
  return sets;
}

function stop_marks(shown, axis, thin) {
  const last = (trial) => curve_points(trial, axis).pop();
  return {type: 'scatter', order: 2, clip: 6, pointStyle: 'crossRot', pointBorderWidth: 1.3, pointRadius: thin ? 2 : 3.5,
    make: () => shown.filter((trial) => trial.phase === 'Stopped' && is_selected(trial)).map(last),
    ink: {pointBorderColor: () => colors.stopped}};
}

// Curves of one point, which no line shows.
function single_marks(shown, axis) {
  const best = best_of(objective);
  const is_single = (trial) => trial.curve.length === 1 && trial !== best && is_selected(trial);
  return {type: 'scatter', order: 15, clip: 6, pointRadius: 2.5, pointBorderWidth: 0,
    make: () => shown.filter(is_single).flatMap((trial) => curve_points(trial, axis)),
    ink: {pointBackgroundColor: () => colors.accent}};
}

/** @param {TrialRow} trial */
function has_curve(trial) {
  return trial.curve.some((point) => point[1 + objective] !== null);
}

function are_there_curves() {
  return study.maxStep > 1 || trials.some((trial) => trial.curve.length > 1 && has_curve(trial));
}

// The curves that are lines: all, or of many the best and those that grow.
function choose_lines(shown) {
  if (shown.length <= kMostLines) return shown;
  const standings = standings_of(objective);
  const standing = (trial) => standings.get(trial.name) ?? 0;
  const order = [...shown].sort((a, b) => standing(b) - standing(a));
  const growing = order.slice(kBestLines).filter((trial) => trial.phase === 'Running').slice(0, kMostRunning);
  return [...order.slice(0, kBestLines), ...growing];
}

// In two frames: of thousands of trials each half takes a while.
function* draw_curves() {
  const section = document.getElementById('curves');
  const shown = trials.filter(has_curve);
  const values = shown.flatMap((trial) => trial.curve.map((point) => point[1 + objective]));
  const axis = value_axis(values, objective);
  const many = shown.length > kMostLines;
  const lines = choose_lines(shown);
  const drawn_lines = new Set(lines);
  const others = many ? shown.filter((trial) => !drawn_lines.has(trial)) : [];
  if (many) yield;
  density = many ? {others, axis} : null;
  count_density();
  const x = {type: 'linear', min: 0, max: study.maxStep};
  const scales = {x: scale_of(x, study.unit), y: scale_of(axis, metric())};
  scales.x.ticks.precision = 0;
  const options = trial_options(scales, {parsing: false, normalized: true});
  options.plugins.tooltip.callbacks.afterTitle = (items) =>
    items[0] ? study.unit + ' ' + items[0].raw.x : '';
  const datasets = [...curve_lines(lines, axis, many), single_marks(lines, axis), stop_marks(lines, axis, many)];
  document.getElementById('curves-note').textContent = many
    ? 'The best ' + kBestLines + ' trials and running ones are lines; the darker the ground, the more of the ' +
      'others pass there.'
    : 'One line per trial; better trials are bolder; × marks early stopping.';
  say(section, beyond_text([{axis, values}]).replace(', drawn as arrows at the edge', ', drawn at the edge'));
  draw(section, shown.length > 0 && {data: {datasets}, options, plugins: [kDensityMap]},
    'No trial has reported yet.');
}

// Another selection or theme.
function renew_curves() {
  count_density();
  renew_chart(document.getElementById('curves'));
}
