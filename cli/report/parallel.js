// Parallel coordinates, on a canvas of our own: an axis a parameter and one for the objective. A
// range on an axis selects trials; the buttons above the axes move and hide them.
'use strict';

const kGap = 128;                     // between axes, at least
const kMostAxes = 24;
const hidden_axes = new Set();        // names of parameters
/** @type {string[] | null} */
let axis_order = null;                // names of parameters; null: the important ones first
/** @typedef {{name: string, labels?: string[], low: string, high: string, log: boolean, absent?: boolean,
 *             result?: boolean, ticks: {share: number, text: string}[], share: (trial: TrialRow) => number}} ParallelAxis */
/** @typedef {{width: number, height: number, top: number, bottom: number, absent: number, step: number,
 *             x: (i: number) => number, y: (share: number) => number}} Layout */
/** @type {ParallelAxis[]} */
let parallel_axes = [];
/** @type {HTMLCanvasElement | null} */
let line_layer = null;                // canvas with all lines, painted below the axes
const kLinesAtOnce = 50;              // drawn between two looks at the clock
const kShadesOfLines = Array.from({length: 21}, (_, i) => i / 20);
const kLineShare = 12;                // ms of a frame

function parallel_parameters() {
  const rows = data.insights[objective].importance ?? [];
  const total = new Map(rows.map((row) => [row.parameter, row.total]));
  const important = [...study.parameters].sort((a, b) => (total.get(b.name) ?? 0) - (total.get(a.name) ?? 0));
  axis_order ??= important.map((parameter) => parameter.name);
  return axis_order.filter((name) => !hidden_axes.has(name)).slice(0, kMostAxes - 1)
    .map((name) => study.parameters.find((parameter) => parameter.name === name));
}

// Round numbers inside the ends, at most about four; powers of ten where the axis is logarithmic.
function ticks_between(low, high, log) {
  if (!(high > low)) return [];
  const ticks = [];
  if (log) {
    const every = Math.max(1, Math.ceil(Math.log10(high / low) / 5));
    for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power += every) {
      ticks.push(10 ** power);
    }
    return ticks;
  }
  const rough = (high - low) / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough);
  for (let i = Math.ceil(low / step); i * step <= high; ++i) ticks.push(i * step);
  return ticks;
}

// Ticks with the shares of the axis at which they lie; those beside an end would cover its label.
function placed_ticks(low, high, log) {
  return ticks_between(low, high, log).map((value) => ({share: share_between(value, low, high, log),
    text: number_text(value)})).filter(({share}) => share > 0.07 && share < 0.93);
}

/**
 * @param {Parameter} parameter
 * @returns {ParallelAxis}
 */
function parameter_axis_of(parameter) {
  const axis = parameter_axis(parameter);
  const absent = trials.some((trial) => !has_parameter(trial, parameter.name));
  const log = axis.type === 'logarithmic';
  return {name: parameter.name, labels: axis.labels, low: axis.low, high: axis.high, log, absent,
    ticks: axis.labels ? [] : placed_ticks(parameter.min, parameter.max, log),
    share: (trial) => has_parameter(trial, parameter.name)
      ? axis.share(trial.parameters[parameter.name]) : NaN};
}

/** @returns {ParallelAxis[]} */
function make_axes() {
  const axes = parallel_parameters().map(parameter_axis_of);
  const values = trials.filter((trial) => has_value(trial, objective)).map((t) => t.values[objective]);
  const scale = value_axis(values, objective);
  const log = scale.type === 'logarithmic';
  axes.push({name: metric(), low: number_text(scale.low), high: number_text(scale.high), log, result: true,
    ticks: placed_ticks(scale.low, scale.high, log),
    share: (trial) => share_between(scale.clamp(trial.values[objective]), scale.low, scale.high, log)});
  return axes;
}

// Whether a trial lies in every range that was chosen. One that lacks the parameter does not.
/** @param {TrialRow} trial */
function is_in_ranges(trial) {
  return parallel_axes.every((axis) => {
    const range = chosen_ranges.get(axis.name);
    if (!range) return true;
    const share = axis.share(trial);
    return share >= range[0] && share <= range[1];
  });
}

/** @param {HTMLCanvasElement} canvas */
function parallel_layout(canvas) {
  const box = canvas.parentElement;
  const width = Math.max(box.clientWidth, 120 + kGap * (parallel_axes.length - 1));
  const top = 18;
  const bottom = 284;
  const left = 64;
  const step = parallel_axes.length > 1 ? (width - left - 100) / (parallel_axes.length - 1) : 0;
  return {width, height: 326, top, bottom, absent: bottom + 26, step, x: (i) => left + step * i,
    y: (share) => bottom - (bottom - top) * share};
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Layout} layout
 * @param {CanvasRenderingContext2DSettings} [options]
 * @returns {CanvasRenderingContext2D}
 */
function sized_canvas(canvas, layout, options) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(layout.width * ratio) || canvas.height !== Math.round(layout.height * ratio)) {
    canvas.width = layout.width * ratio;
    canvas.height = layout.height * ratio;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', options));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  return context;
}

// The lines that are there, and over them the axes.
function paint_parallel() {
  const canvas = document.querySelector('#parallel canvas');
  const layout = parallel_layout(canvas);
  const context = sized_canvas(canvas, layout);
  canvas.style.width = layout.width + 'px';
  canvas.style.height = layout.height + 'px';
  if (line_layer) context.drawImage(line_layer, 0, 0, layout.width, layout.height);
  parallel_axes.forEach((axis, i) => draw_axis(context, layout, axis, i));
  place_axis_buttons(layout);
}

// Lines are drawn beside the screen, some in each frame, and shown when all are there. A browser
// keeps lines for later: reading a point makes it draw them now, so that the clock counts them.
function* draw_parallel() {
  let began = performance.now();
  draw_axis_buttons();
  const layout = parallel_layout(document.querySelector('#parallel canvas'));
  const layer = document.createElement('canvas');
  const context = sized_canvas(layer, layout, {willReadFrequently: true});
  const ordered = ordered_lines();
  for (let from = 0; from < ordered.length; from += kLinesAtOnce) {
    draw_lines(context, layout, ordered.slice(from, from + kLinesAtOnce), ordered.length > 300);
    context.getImageData(0, 0, 1, 1);
    if (performance.now() - began < kLineShare) continue;
    yield;
    began = performance.now();
  }
  line_layer = layer;
  paint_parallel();
}

// Selected ones last, and of them the best.
function ordered_lines() {
  const standings = standings_of(objective);
  return trials.filter((trial) => has_value(trial, objective)).sort((a, b) =>
    Number(is_selected(a)) - Number(is_selected(b)) || standings.get(a.name) - standings.get(b.name));
}

/** @param {Layout} layout */
function draw_lines(context, layout, some, many) {
  const standings = standings_of(objective);
  const best = best_of(objective);
  const shades = kShadesOfLines.map(shade);
  for (const trial of some) {
    const chosen = is_selected(trial);
    const standing = standings.get(trial.name);
    context.globalAlpha = chosen ? (many ? 0.06 + 0.6 * standing ** 4 : 0.85) : 0.12;
    context.strokeStyle = trial === best && chosen ? colors.best
      : chosen ? shades[Math.round(20 * standing)] : colors['worst-line'];
    context.lineWidth = trial === best && chosen ? 2.8 : many ? 0.8 : 1.3;
    if (trial === best && chosen) context.globalAlpha = 1;
    draw_line(context, layout, trial);
  }
  context.globalAlpha = 1;
}

// A trial that lacks a parameter passes below its axis.
/**
 * @param {Layout} layout
 * @param {TrialRow} trial
 */
function draw_line(context, layout, trial) {
  context.beginPath();
  parallel_axes.forEach((axis, i) => {
    const share = axis.share(trial);
    const spot = axis.labels ? share + spread(trial.index, 0.5 / axis.labels.length) : share;
    const y = Number.isNaN(share) ? layout.absent + spread(trial.index, 8) : layout.y(spot);
    if (i > 0) context.lineTo(layout.x(i), y);
    else context.moveTo(layout.x(i), y);
  });
  context.stroke();
}

/** @param {Layout} layout */
function draw_axis(context, layout, axis, i) {
  const x = layout.x(i);
  context.strokeStyle = colors.quiet;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, layout.top);
  context.lineTo(x, layout.bottom);
  for (const {share} of axis.ticks) {
    context.moveTo(x - 3, layout.y(share));
    context.lineTo(x + 3, layout.y(share));
  }
  context.stroke();
  const range = chosen_ranges.get(axis.name);
  if (range) {
    context.fillStyle = colors.band;
    context.strokeStyle = colors.accent;
    const height = layout.y(range[0]) - layout.y(range[1]);
    context.fillRect(x - 8, layout.y(range[1]), 16, height);
    context.strokeRect(x - 8, layout.y(range[1]), 16, height);
  }
  context.textAlign = 'left';
  context.font = '11px ' + Chart.defaults.font.family;
  const write = (text, y) => write_label(context, text, x + 7, y, Math.min(layout.step, 160) - 20);
  if (axis.absent) write('not set', layout.absent);
  if (axis.labels) {
    const every = Math.ceil(axis.labels.length / 12);
    axis.labels.forEach((label, at) => {
      if (at % every === 0) write(label, layout.y((at + 0.5) / axis.labels.length));
    });
    return;
  }
  for (const {share, text} of axis.ticks) write(text, layout.y(share));
  write(axis.high, layout.top);
  write(axis.low, layout.bottom);
}

// In a box of the panel's colour, so that it can be read over lines.
function write_label(context, text, x, y, most) {
  let shown = text;
  while (shown.length > 3 && context.measureText(shown).width > most) {
    shown = shown.slice(0, -2).replace(/…$/, '') + '…';
  }
  context.globalAlpha = 0.82;
  context.fillStyle = colors.panel;
  context.fillRect(x - 3, y - 8, context.measureText(shown).width + 6, 16);
  context.globalAlpha = 1;
  context.fillStyle = colors.quiet;
  context.fillText(shown, x, y + 4);
}

// Moves the axis of a parameter to the place of another one that is shown.
function move_axis(name, target) {
  const to = axis_order.indexOf(target);
  if (to < 0 || name === target) return;
  axis_order.splice(axis_order.indexOf(name), 1);
  axis_order.splice(to, 0, name);
  draw_axis_buttons();
  draw_soon(document.getElementById('parallel'));
  document.querySelector('#axes [data-axis="' + CSS.escape(name) + '"]')?.focus();
}

function hide_axis(name, hidden) {
  if (hidden) {
    hidden_axes.add(name);
    chosen_ranges.delete(name);
  } else {
    hidden_axes.delete(name);
  }
  draw_axis_buttons();
  draw_soon(document.getElementById('parallel'));
  show_selection();
}

// What the keys do at the name of an axis.
function axis_key(event, name) {
  const shown = parallel_axes.map((axis) => axis.name).slice(0, -1);
  const at = shown.indexOf(name);
  const steps = {ArrowLeft: -1, ArrowRight: 1};
  if (steps[event.key] && shown[at + steps[event.key]] !== undefined) {
    event.preventDefault();
    move_axis(name, shown[at + steps[event.key]]);
  }
}

function axis_button(name) {
  const button = document.createElement('button');
  button.type = 'button';
  button.dataset.axis = name;
  button.draggable = true;
  button.textContent = name;
  button.title = name + ': click to hide, drag or arrow keys to move';
  button.setAttribute('aria-label', 'Axis ' + name + ': press to hide, left and right to move');
  button.addEventListener('click', () => hide_axis(name, true));
  button.addEventListener('keydown', (event) => axis_key(event, name));
  button.addEventListener('dragstart', (event) => event.dataTransfer.setData('text/plain', name));
  button.addEventListener('dragover', (event) => event.preventDefault());
  button.addEventListener('drop', (event) => {
    event.preventDefault();
    const moved = event.dataTransfer.getData('text/plain');
    if (axis_order.includes(moved)) move_axis(moved, name);
  });
  return button;
}

let axis_buttons_of = '';  // the axes whose names stand there

// The names above the axes, and the hidden ones below the chart.
function draw_axis_buttons() {
  parallel_axes = make_axes();
  const wanted = JSON.stringify([parallel_axes.map((axis) => axis.name), [...hidden_axes]]);
  if (wanted === axis_buttons_of) return;  // one may have the focus
  axis_buttons_of = wanted;
  const row = document.getElementById('axes');
  row.textContent = '';
  for (const axis of parallel_axes) {
    if (!axis.result) {
      row.appendChild(axis_button(axis.name));
      continue;
    }
    const name = row.appendChild(document.createElement('span'));
    name.textContent = axis.name;
    name.title = axis.name;
  }
  place_axis_buttons(parallel_layout(document.querySelector('#parallel canvas')));
  const place = document.getElementById('hidden-axes');
  place.textContent = hidden_axes.size > 0 ? 'Hidden: ' : '';
  for (const name of hidden_axes) {
    const button = place.appendChild(document.createElement('button'));
    button.type = 'button';
    button.textContent = '+ ' + name;
    button.setAttribute('aria-label', 'Show the axis ' + name);
    button.addEventListener('click', () => hide_axis(name, false));
  }
}

/** @param {Layout} layout */
function place_axis_buttons(layout) {
  const row = document.getElementById('axes');
  row.style.width = layout.width + 'px';
  [...row.children].forEach((each, i) => {
    each.style.left = layout.x(i) + 'px';
    each.style.maxWidth = Math.max(layout.step, kGap) - 8 + 'px';
  });
}

// Dragging along an axis chooses a range, a click on it lets go.
function watch_parallel() {
  const canvas = document.querySelector('#parallel canvas');
  describe(canvas, document.getElementById('parallel'));
  let dragged = null;  // {axis, from}
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    const layout = parallel_layout(canvas);
    const x = event.clientX - box.left;
    const at = parallel_axes.findIndex((_, i) => Math.abs(layout.x(i) - x) < 18);
    const share = (layout.bottom - (event.clientY - box.top)) / (layout.bottom - layout.top);
    return {axis: parallel_axes[at], share: Math.min(Math.max(share, 0), 1)};
  };
  canvas.addEventListener('pointerdown', (event) => {
    const {axis, share} = spot(event);
    if (!axis) return;
    dragged = {axis, from: share};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const here = spot(event);
    canvas.style.cursor = here.axis || dragged ? 'ns-resize' : 'default';
    if (!dragged) return;
    const ends = [dragged.from, here.share].sort((a, b) => a - b);
    chosen_ranges.set(dragged.axis.name, ends);
    paint_parallel();
    show_selection();
  });
  canvas.addEventListener('pointerup', (event) => {
    if (!dragged) return;
    if (Math.abs(spot(event).share - dragged.from) < 0.01) chosen_ranges.delete(dragged.axis.name);
    dragged = null;
    show_selection();
  });
}
